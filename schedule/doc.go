// Package schedule holds pipeline schedules as data: for each pipeline rank the ordered list of its actions.
//
// A Program is the narrow waist between those who decide (plan, search) and those who act (the engine that trains, the
// simulator that predicts): Generate makes one from a Spec, Check proves it without running, Time replays it under unit
// costs, Text and SVG draw it. Nothing here has a clock, I/O or a goroutine.
//
// # Symbols
//
// p pipeline ranks, v chunks per rank, m micro-batches per step, r a rank. The model is cut into stages 0 .. Depth-1 in model
// order. A rank holds one stage in each of its chunks. A pipe is one way through a copy of the model: all schedules but
// DualPipe have pipe 0 only; DualPipe has two copies, of which pipe 0 runs from rank 0 to p-1 and pipe 1 from p-1 to 0. A
// micro-batch travels one pipe (Program.Pipes).
//
//	schedule            stage of (rank r, chunk c)            pipes
//	afab 1f1b zb-h1     r                                     1
//	interleaved         c·p + r                               1
//	zb-v dualpipe-v     chunk 0: r, chunk 1: 2p-1-r           1
//	dualpipe            chunk 0: r, chunk 1: p-1-r            2, pipe c
//
// # What an executor must do
//
// It walks its rank's list in order and keeps, per micro-batch and chunk, four slots: the stage's input x, its output y,
// the gradient dy of the output and the gradient dx of the input.
//
//	Forward       y = stage(x), keeping what backward needs. The first stage of a pipe reads the micro-batch itself; the last one
//	              computes the loss and has no y. If the next stage is a chunk of the same rank (Route.Next), y becomes that
//	              chunk's x there and then; otherwise it waits for its SendActivation.
//	Backward      dx = gradient of the input, and the weight gradients are added up, both now. The last stage starts from the loss,
//	              the first has no dx. If the previous stage is a chunk of the same rank, dx becomes its dy there and then;
//	              otherwise it waits for its SendGradient.
//	Input         as Backward, but the weight gradients are deferred: what they need is kept until the Weight action.
//	Weight        runs the deferred weight gradients of its micro-batch and chunk and frees what they kept.
//	Pair          Forward of (Micro, Chunk) together with With (Backward or Input of another micro-batch). The halves are
//	              independent of each other: run them in either order, or at once.
//	SendActivation, SendGradient
//	              hand y (dx) of (Micro, Chunk) to rank Peer. A send never blocks its rank: the engine buffers.
//	RecvActivation, RecvGradient
//	              wait for the oldest message that Peer sent here of this kind and that was not yet received; it is x (dy)
//	              of (Micro, Chunk). Messages from one rank to another of one kind arrive in the order of sending; activations
//	              and gradients are two separate queues.
//
// Chunk always counts the chunks of the rank whose list holds the action: a send names the chunk that produced, a receive
// the chunk that will consume.
package schedule
