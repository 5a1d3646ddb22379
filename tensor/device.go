package tensor

// Device computes on tensors. All operands of one call are of one arena. Unless an operation says otherwise
// they are of one floating dtype; statistics (RMS, log-sum-exp) are fp32, or fp64 when the operands are.
// BF16 operands are expanded to fp32, computed, and rounded once (to nearest, ties to even).
//
// A call returns when the result is there. Results do not depend on the number of threads. After
// warm-up no call allocates memory. A device serves one goroutine at a time.
type Device interface {
	// Threads is the number of threads that one call may use.
	Threads() int
	// Close stops the device's threads.
	Close()

	LinearDevice
	AttentionDevice
	PointwiseDevice
	LossDevice
	ExpertDevice
	OptimizerDevice
}

// LinearDevice has the matrix products.
type LinearDevice interface {
	// MatMul computes op.C from op.A and op.B. 2·M·N·K FLOPs.
	MatMul(op MatMul)
	// SumRows adds the column sums of x [T N] to dst [N], which may be fp32 when x is bf16: a bias gradient.
	SumRows(dst, x *Tensor)
}

// MatMul is C = op(A)·op(B) with an epilogue. With op(A) [M K], op(B) [K N] and C [M N], where TransA
// means that A is stored [K M], and TransB that B is stored [N K] (as a linear layer's weight is).
// Each operand may be fp32 or bf16 on its own; fp64 goes with fp64 only. Accumulation is in fp32
// (fp64), rounded once at the end.
type MatMul struct {
	C, A, B        *Tensor
	TransA, TransB bool
	Accumulate     bool    // add to C instead of overwriting it
	Bias           *Tensor // [N], added to every row; nil for none
	Residual       *Tensor // [M N], added to the product; may be C's twin but not C; nil for none
}

// Columns is a run of heads inside a matrix: row r of head h is the Width elements from column
// Start + h·Width on. Query, key and value are three runs of the one matrix that a fused projection made.
type Columns struct {
	T     *Tensor // [T N]
	Start int     // first column
	Heads int
	Width int // head size D
}

// AttentionDevice has the operations inside an attention block.
type AttentionDevice interface {
	// Attention computes softmax(Q·Kᵀ·Scale + mask)·V by blocks with online softmax; see [Attention].
	// 4·D FLOPs per pair of query and visible key and head.
	Attention(op Attention)
	// AttentionBackward computes the gradients of Q, K and V; see [AttentionBackward]. 10·D FLOPs per pair and head.
	AttentionBackward(op AttentionBackward)
	// Rotate applies rotary position embedding in place; see [Rotate].
	Rotate(op Rotate)
}

// Attention is scaled dot-product attention over a batch of equally long sequences. Rows of Q and Out
// are B·S queries, rows of K and V are B·SK keys, sequence by sequence. Query head h reads key-value
// head h / (Q.Heads / K.Heads).
type Attention struct {
	Out     Columns // [B·S, A·D]
	Q, K, V Columns
	LSE     *Tensor // out: log-sum-exp of each query's scores, [B A S], fp32 or fp64
	Batch   int     // B
	Scale   float64
	Causal  bool // a query sees keys at positions up to its own

	// QueryPos and KeyPos are the positions of the rows in their sequence, int32 [S] and [SK], for causal
	// masking when rows are not 0, 1, 2, … (context parallelism); nil means they are. Positions rise within each
	// of the runs of equal length that zigzag balancing makes.
	QueryPos, KeyPos *Tensor
	// QueryDoc and KeyDoc are the document of each row, int32 [B S] and [B SK]; attention does not cross
	// documents. nil means that each sequence is one document.
	QueryDoc, KeyDoc *Tensor
	// Merge combines the result with the Out and LSE of the keys seen before, as if all had been seen at once.
	Merge bool
	// Dropout drops probabilities after the softmax. LSE is that of all.
	Dropout AttentionDropout
}

// AttentionBackward is the backward of Attention, given its forward operands and results.
type AttentionBackward struct {
	Forward    Attention // Out and LSE are inputs here; over all keys, also when Forward ran in merged parts
	DOut       Columns   // gradient of Out
	DQ, DK, DV Columns   // results
	// Delta is workspace [B A S] in LSE's dtype: the row sums of Out·DOut.
	Delta *Tensor
	// Accumulate adds to DQ, DK and DV instead of overwriting them.
	Accumulate bool
}

// Rotate turns pairs (i, i+D/2) of every head by the angle of the row's position: the rotate-half form of
// Hugging Face's checkpoints. Cos and Sin are [positions D/2], fp32 or fp64.
type Rotate struct {
	X        Columns
	Cos, Sin *Tensor
	Pos      *Tensor // int32 [T], or [S] repeated for every sequence; nil for 0, 1, … S-1 repeated
	S        int     // rows of a sequence
	Inverse  bool    // turn back: the backward
}

// PointwiseDevice has what is bound by memory, not arithmetic.
type PointwiseDevice interface {
	// RMSNorm computes y = x·rstd·w over each head-width run, rstd = 1/sqrt(mean(x²)+eps); see [Norm].
	RMSNorm(op Norm)
	// RMSNormBackward computes the gradients; see [NormBackward].
	RMSNormBackward(op NormBackward)
	// LayerNorm computes y = (x-mean)·rstd·w + b.
	LayerNorm(op Norm)
	// LayerNormBackward computes the gradients.
	LayerNormBackward(op NormBackward)

	// SwiGLU computes y = silu(g)·u where x [T 2F] holds g in the first F columns and u in the others; y [T F].
	SwiGLU(y, x *Tensor)
	// SwiGLUBackward computes dx [T 2F] from dy [T F] and x, and y once more, when y is not nil. dx may be x.
	SwiGLUBackward(dx, y, dy, x *Tensor)
	// GELU computes the tanh form of GPT-2: y = x/2·(1+tanh(√(2/π)(x+0.044715x³))).
	GELU(y, x *Tensor)
	// GELUBackward computes dx from dy and x, and y once more, when y is not nil. dx may be x or dy.
	GELUBackward(dx, y, dy, x *Tensor)

	// Embed sets y [T H] to the rows ids-start of table [V H]; ids outside of the table give zeros (another rank's
	// part of the vocabulary). ids is int32 [T].
	Embed(y, table, ids *Tensor, start int)
	// EmbedBackward adds the rows of dy to the rows ids-start of dtable.
	EmbedBackward(dtable, dy, ids *Tensor, start int)

	// Fill sets every element.
	Fill(t *Tensor, v float64)
	// Copy converts src to dst's dtype; equal lengths.
	Copy(dst, src *Tensor)
	// CopyColumns copies a run of heads into another of the same size; rows are equal.
	CopyColumns(dst, src Columns)
	// Add adds src to dst, in the wider of their precisions, rounded to dst's.
	Add(dst, src *Tensor)
	// Scale multiplies every element.
	Scale(t *Tensor, v float64)
	// Dropout zeroes elements at random and adds a residual; see [Dropout].
	Dropout(op Dropout)
	// Normal draws counter-based normal numbers; see [Normal].
	Normal(op Normal)
}

// Norm is a normalisation over runs of X.Width elements. For a block's norm, Heads is 1 and Width is H; for QK-norm
// Width is the head size D. X and Y may be the same run.
type Norm struct {
	Y, X Columns
	W    *Tensor // [Width]
	B    *Tensor // [Width], layer norm only
	Mean *Tensor // out [T Heads], layer norm only; fp32 or fp64
	RStd *Tensor // out [T Heads]; fp32 or fp64
	Eps  float64
}

// NormBackward is the backward of a Norm.
type NormBackward struct {
	DX         Columns // result
	DY, X      Columns // DX may be DY
	W          *Tensor
	DW, DB     *Tensor // gradients are added to these; may be fp32 when the rest is bf16
	Mean, RStd *Tensor // of the forward
	// Accumulate adds to DX instead of overwriting it: the residual branch's gradient is already there.
	Accumulate bool
	// Y, when its T is not nil, receives the forward's result once more (so that it need not be kept).
	Y Columns
	B *Tensor // layer norm's bias, for Y
}

// Normal sets t, seen as a block of a larger parameter, to mean 0 normal numbers of deviation Std. Element (i, j) of
// the block gets number (Row+i)·Cols + Col+j of the stream named by Key: the same number under every layout.
// The generator is Philox4x32-10 (Salmon et al., SC 2011) with Box-Muller.
type Normal struct {
	T        *Tensor // [rows cols], or [cols]
	Key      uint64  // from the seed and the parameter's name
	Std      float64
	Row, Col int // of the block in the parameter
	Cols     int // of the parameter
}

// LossDevice has the parts of the vocabulary-parallel cross-entropy. A target of -1 is ignored.
type LossDevice interface {
	// LossStats computes, for every row of logits [T V], its maximum, the sum of exp(logit - maximum), and
	// the logit of its target, or 0 if target-start is not a column. All three results are [T], fp32 or fp64.
	LossStats(top, sum, target, logits, targets *Tensor, start int)
	// LossMerge turns this rank's (top, sum) into the sum relative to all ranks' maximum: sum *= exp(top - all).
	LossMerge(sum, top, all *Tensor)
	// Loss returns the sum over valid rows of log(sum) + top - target.
	Loss(top, sum, target, targets *Tensor) float64
	// LossBackward overwrites logits with their gradient: scale·(softmax - onehot), zero for ignored rows.
	LossBackward(logits, top, sum, targets *Tensor, start int, scale float64)
}

// OptimizerDevice has what happens once a step.
type OptimizerDevice interface {
	// AdamW updates parameters; see [AdamW].
	AdamW(op AdamW)
	// SGD updates parameters; see [SGD].
	SGD(op SGD)
	// SquaredNorm is the sum of squares, accumulated in float64 in a fixed order.
	SquaredNorm(t *Tensor) float64
	// Finite reports whether every element is finite.
	Finite(t *Tensor) bool
}

// AdamW is one step of Loshchilov and Hutter's optimizer (arXiv 1711.05101) with bias correction:
//
//	g = Grad·GradScale; m = β1·m + (1-β1)·g; v = β2·v + (1-β2)·g²
//	p -= Rate·(m/Correct1 / (sqrt(v/Correct2) + Eps) + Decay·p)
type AdamW struct {
	Master, M, V *Tensor // fp32, or fp64
	Grad         *Tensor // fp32, bf16 or fp64
	Param        *Tensor // bf16 copy that receives the rounded master; nil when the master is the parameter

	Rate, Beta1, Beta2, Eps, Decay float64
	Correct1, Correct2             float64 // 1-β1^t, 1-β2^t
	GradScale                      float64 // from clipping
}

// SGD is stochastic gradient descent with momentum: m = μ·m + g; p -= Rate·(m + Decay·p).
type SGD struct {
	Master, M   *Tensor // M nil for no momentum
	Grad, Param *Tensor // as for AdamW

	Rate, Momentum, Decay, GradScale float64
}
