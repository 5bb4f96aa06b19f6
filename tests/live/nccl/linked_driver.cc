// A program that was linked with NCCL, dynamically or statically.
extern "C" int run_linked(const char* scenario);

int main(int argc, char** argv) { return argc == 2 ? run_linked(argv[1]) : 97; }
