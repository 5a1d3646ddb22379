package main

import (
	"context"
	"path/filepath"
)

// blas is the peers' program, compiled against one library, with the kernels that it is told to use.
type blas struct {
	name, binary string
	env          []string
}

// compilePeers compiles bench/peers/gemm.c against each library that Debian has.
func compilePeers(ctx context.Context, o options) ([]blas, error) {
	onednn, err := compilePeer(ctx, o, "USE_ONEDNN", "/usr/lib/*/libdnnl.so.[2-9]", "libdnnl2")
	if err != nil {
		return nil, err
	}
	openblas, err := compilePeer(ctx, o, "USE_OPENBLAS", "/usr/lib/*/openblas-openmp/libopenblas.so.0", "libopenblas0-openmp")
	if err != nil {
		return nil, err
	}
	out := []blas{{"oneDNN", onednn, nil}}
	for _, core := range o.coreTypes {
		out = append(out, blas{"OpenBLAS " + core, openblas, []string{"OPENBLAS_CORETYPE=" + core}})
	}
	return out, nil
}

// compilePeer compiles the program against the library that matches the pattern and returns its path.
func compilePeer(ctx context.Context, o options, define, pattern, debianPackage string) (string, error) {
	path, err := library(pattern, debianPackage)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(o.build, define)
	_, err = program{args: []string{
		"cc", "-O2", "-D" + define, filepath.Join(o.peers, "gemm.c"), path, "-Wl,-rpath," + filepath.Dir(path), "-o", binary,
	}}.run(ctx)
	return binary, err
}
