//go:build !race

package parallel_test

const racing = false
