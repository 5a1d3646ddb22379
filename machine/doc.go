// Package machine tells what this computer is: its processor, its memory and the MPI libraries on it.
//
// It reads facts and measures nothing; what the arithmetic reaches is measured in package tensor. Limits that a
// container sets count as facts: the processors that Go may use, the memory that the control group allows.
package machine
