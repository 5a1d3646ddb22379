package kernel

//go:generate go run -C _asm ./gemm -out ../gemm_amd64.s -stubs ../gemm_amd64.go -pkg kernel
