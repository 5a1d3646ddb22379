//go:build !race

package nn_test

const racing = false
