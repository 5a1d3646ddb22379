//go:build !unix

package main

// failingWrites makes writes that the system refuses errors like any other; here they are.
func failingWrites() {}
