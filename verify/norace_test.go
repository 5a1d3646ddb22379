//go:build !race

package verify_test

const racing = false
