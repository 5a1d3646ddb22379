//go:build !race

package optim_test

const racing = false
