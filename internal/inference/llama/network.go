package llama

import (
	"fmt"
	"slices"

	native "github.com/hybridgroup/yzma/pkg/llama"
)

type token = native.Token

// network is a loaded model with one sequence of tokens in its cache. It is the only place that calls native code, and
// it does so with arguments that were checked before: most of that code ends the process rather than return an error.
type network struct {
	model   native.Model
	context native.Context
	memory  native.Memory
	vocab   native.Vocab
	batch   native.Batch
	words   int
	stop    *stopSign
}

// shape is how a network computes.
type shape struct {
	window, batch, threads int
	// classHead is for encoders: the whole input in one batch, one number a class.
	classHead bool
}

// loadModel maps the weights. Nothing is placed on other devices than the CPU.
func loadModel(path string) (*network, error) {
	params := native.ModelDefaultParams()
	params.SetCPUOnly()
	params.LoadMode = native.LoadModeMmap
	// Weights of some kinds are laid out anew for this kind of CPU, in memory of their own: see memoryFor.
	params.UseExtraBufts = 1
	model, err := native.ModelLoadFromFile(path, params)
	if err != nil {
		return nil, refuse(ModelMalformed, "the engine does not load the model")
	}
	n := &network{model: model, vocab: native.ModelGetVocab(model)}
	n.words = int(native.VocabNTokens(n.vocab))
	return n, nil
}

// prepare makes the context in which prompts are computed.
func (n *network) prepare(s shape) error {
	params := native.ContextDefaultParams()
	params.NCtx, params.NBatch, params.NUbatch = uint32(s.window), uint32(s.batch), uint32(s.batch)
	params.NSeqMax, params.NOutputsMax = 1, 1
	params.NThreads, params.NThreadsBatch = int32(s.threads), int32(s.threads)
	params.NoPerf = 1
	var err error
	if n.stop, err = newStopSign(); err != nil {
		return refuse(LibraryMissing, "%v", err)
	}
	params.AbortCallback, params.AbortCallbackData = isUpAddress, n.stop.address()
	// Models with a sliding window must keep what lies outside of it too, or the cache cannot be cut back.
	params.SwaFull = 1
	if s.classHead {
		params.PoolingType, params.Embeddings, params.NOutputsMax = native.PoolingTypeRank, 1, 0
	}
	if n.context, err = native.InitFromModel(n.model, params); err != nil {
		return refuse(MemoryTooSmall, "the engine cannot make a context of %d tokens", s.window)
	}
	if n.memory, err = native.GetMemory(n.context); err != nil {
		return refuse(ModelMalformed, "the model has no cache: %v", err)
	}
	n.batch = native.BatchInit(int32(s.batch), 0, 1)
	return nil
}

// tokens splits text that holds no NUL. Only text of this package or of the model's template may have special tokens.
func (n *network) tokens(text string, addSpecial, parseSpecial bool) []token {
	if text == "" && !addSpecial {
		return nil
	}
	return native.Tokenize(n.vocab, text, addSpecial, parseSpecial)
}

// text is what tokens stand for, control tokens as they are written.
func (n *network) text(tokens []token) string {
	return native.Detokenize(n.vocab, tokens, false, true)
}

// isForbidden says that the token steers the model, whatever its spelling, or stands for what the model cannot read: that
// would be a hole in the text which nobody sees.
func (n *network) isForbidden(t token) bool {
	return native.VocabIsControl(n.vocab, t) || native.VocabIsEOG(n.vocab, t) || native.VocabGetAttr(n.vocab, t)&native.TokenAttrUnknown != 0
}

// isMarker says that the token is one that the model's makers added as a whole, spelled like a tag.
func (n *network) isMarker(t token) bool {
	if native.VocabGetAttr(n.vocab, t)&native.TokenAttrUserDef == 0 {
		return false
	}
	text := native.VocabGetText(n.vocab, t)
	return len(text) > 2 && (text[0] == '<' || text[0] == '[')
}

// extend computes tokens that follow the first at tokens of the sequence. With read set, logits returns the scores of
// what would come after the last one.
func (n *network) extend(tokens []token, at int, read bool) error {
	if err := n.fill(tokens, at, read); err != nil {
		return err
	}
	code, err := native.Decode(n.context, n.batch)
	if err != nil || code != 0 {
		return fmt.Errorf("the engine does not compute %d tokens after %d: code %d", len(tokens), at, code)
	}
	return nil
}

func (n *network) fill(tokens []token, at int, read bool) error {
	if err := n.batch.Clear(); err != nil {
		return err
	}
	for i, t := range tokens {
		if err := n.batch.Add(t, native.Pos(at+i), []native.SeqId{0}, read && i == len(tokens)-1); err != nil {
			return err
		}
	}
	return nil
}

// logits are valid until the next call of extend.
func (n *network) logits() ([]float32, error) {
	scores, err := native.GetLogitsIth(n.context, -1, n.words)
	if err != nil || len(scores) != n.words {
		return nil, fmt.Errorf("the engine gives %d scores for %d words", len(scores), n.words)
	}
	return scores, nil
}

// classify computes one whole input and returns the score of each class.
func (n *network) classify(tokens []token, classes int) ([]float32, error) {
	if err := n.batch.Clear(); err != nil {
		return nil, err
	}
	for i, t := range tokens {
		if err := n.batch.Add(t, native.Pos(i), []native.SeqId{0}, true); err != nil {
			return nil, err
		}
	}
	code, err := native.Encode(n.context, n.batch)
	if err != nil || code != 0 {
		return nil, fmt.Errorf("the engine does not compute %d tokens: code %d", len(tokens), code)
	}
	scores, err := native.GetEmbeddingsSeq(n.context, 0, int32(classes))
	if err != nil || len(scores) != classes {
		return nil, fmt.Errorf("the engine gives %d scores for %d classes", len(scores), classes)
	}
	return slices.Clone(scores), nil
}

// cut forgets all tokens after the first keep ones.
func (n *network) cut(keep int) error {
	if keep == 0 {
		return native.MemoryClear(n.memory, false)
	}
	done, err := native.MemorySeqRm(n.memory, 0, native.Pos(keep), -1)
	if err == nil && !done {
		err = fmt.Errorf("the engine does not cut its cache back to %d tokens", keep)
	}
	return err
}

func (n *network) close() error {
	var errs [3]error
	if n.batch.Token != nil {
		errs[0] = native.BatchFree(n.batch)
	}
	if n.context != 0 {
		errs[1] = native.Free(n.context)
	}
	errs[2] = native.ModelFree(n.model)
	if n.stop != nil {
		n.stop.free()
	}
	*n = network{}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// special is how a special token is written, empty if the model has none.
func (n *network) special(t token) string {
	if t < 0 || int(t) >= n.words {
		return ""
	}
	return native.VocabGetText(n.vocab, t)
}
