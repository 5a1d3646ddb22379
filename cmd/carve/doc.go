// Command carve plans, proves, runs and serves large language models that are split over many devices.
//
// Every verb is one file: an options struct, its flags, a constructor, and a plain function that does the
// work: run(ctx, out, options) error. The verbs parse, call a package and print; they compute nothing.
//
// # Output
//
// Results go to standard output, everything else to standard error. Verbs that report take --json, which
// prints one JSON object, or one a line, and nothing else on standard output. An error is one line a fault.
//
// # Exit codes
//
//	0    done
//	1    something failed while it ran
//	2    bad input: a plan, a flag, an argument, the data; nothing was started
//	3    interrupted, and the state was saved: "carve train --resume" goes on from there
//	141  whoever read the output stopped reading, as head does
//	130  interrupted before anything could be saved, or a second time
package main
