// Package fidelity compares prices with published runs.
//
// A [Run] is a row of a file of measured training runs: model, cluster, layout, what was measured, and where that is published. What a source
// does not state is filled in from the row's own assumptions before it is priced. [Price] prices a run by package price under the
// profile of its framework; [Summarize] gives median, 90th percentile and worst absolute relative error, and the bias.
//
// A row counts for the step time if its source states everything that the price needs, or the row says what to assume ("step_time_full",
// "step_time_assumed"); for the memory if it has a measured peak ("memory_full"). Rows that do not count are priced too where that is possible,
// and are reported with the reason why they do not count; none is left out silently. Several rows of one configuration (config_group)
// weigh as much as one.
package fidelity
