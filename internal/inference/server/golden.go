package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"gatewright.dev/gatewright/internal/inference/engine"
	"gatewright.dev/gatewright/internal/questions"
	"gatewright.dev/gatewright/internal/strictjson"
)

// DefaultGoldenTolerance covers what one fingerprint may differ by between two instruction sets of a processor. A wrong
// library or damaged weights move an answer by far more.
const DefaultGoldenTolerance = 0.02

// goldenTimeout bounds the golden question: a slow model on a busy machine, and still an end.
const goldenTimeout = 2 * time.Minute

// Golden says which answers to a fixed state make a server ready. The zero value asks and compares only two runs.
type Golden struct {
	// File holds golden answers by fingerprint. Without one, whatever the model answers is taken, if it is an answer.
	File string
	// Record writes the first answer of a fingerprint that File does not hold.
	Record bool
	// Tolerance is the largest difference of one probability; 0 is DefaultGoldenTolerance.
	Tolerance float64
}

// GoldenError says why the golden question does not make the server ready.
type GoldenError struct {
	// Missing means that no answer is known for this fingerprint.
	Missing bool
	// File means that the file cannot be read or written: no answer was found wrong.
	File   bool
	Detail string
}

func (e *GoldenError) Error() string { return "golden question: " + e.Detail }

func (g Golden) validate() error {
	switch {
	case !(g.Tolerance >= 0 && g.Tolerance <= 0.2):
		return errors.New("golden tolerance must be between 0 and 0.2")
	case g.Record && g.File == "":
		return errors.New("a golden answer can be recorded only into a file")
	default:
		return nil
	}
}

// goldenAnswer is one entry of a golden file. Question is a digest of what was asked: answers to other questions are never
// compared.
type goldenAnswer struct {
	Question      string    `json:"question"`
	Model         string    `json:"model"`
	Probabilities []float64 `json:"probabilities"`
}

type goldenFile struct {
	Answers map[string]goldenAnswer `json:"answers"` // by fingerprint
}

func goldenDigest(state []byte, q questions.Question) string {
	sum := sha256.Sum256([]byte(questions.StateBlock(state) + q.QuestionBlock()))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// greet asks the golden question twice, the second time with whatever the engine kept, and compares the answers with
// each other and with those on record. It is also what warms the engine up.
func (s *Server) greet(ctx context.Context) error {
	known, err := s.options.Golden.known(s.info, goldenDigest(s.options.Engine.Golden()))
	if err != nil {
		return err
	}
	first, err := s.goldenAnswer(ctx)
	if err != nil {
		return err
	}
	second, err := s.goldenAnswer(ctx)
	if err != nil {
		return err
	}
	tolerance := orDefault(s.options.Golden.Tolerance, DefaultGoldenTolerance)
	if err := differ("the first answer", first, second, tolerance); err != nil {
		return err
	}
	switch {
	case known != nil:
		if err := differ("the answer on record", *known, first, tolerance); err != nil {
			return err
		}
	case s.options.Golden.Record:
		if err := s.options.Golden.record(s.info, first); err != nil {
			return err
		}
	}
	s.options.Logger.InfoContext(ctx, "golden question answered", "fingerprint", s.info.Fingerprint, "compared", known != nil,
		"recorded", known == nil && s.options.Golden.Record, "probabilities", first.Probabilities)
	return nil
}

func (s *Server) goldenAnswer(ctx context.Context) (goldenAnswer, error) {
	state, q := s.options.Engine.Golden()
	ctx, cancel := context.WithTimeoutCause(ctx, goldenTimeout, errDeadline)
	defer cancel()
	j := &job{ctx: ctx, caller: "golden", state: state, asked: []questions.Question{q}, queued: s.options.Clock.Now(), done: make(chan struct{})}
	if err := s.wait(ctx, j); err != nil {
		if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errDeadline) {
			return goldenAnswer{}, context.Cause(ctx)
		}
		if isFailure(ctx, err) {
			return goldenAnswer{}, &EngineError{err}
		}
		return goldenAnswer{}, &GoldenError{Detail: "no answer: " + err.Error()}
	}
	return goldenAnswer{Question: goldenDigest(state, q), Model: s.info.Model, Probabilities: j.reply.Distributions[0].Probabilities}, nil
}

// differ says where two answers to the same question differ by more than the tolerance, or nothing.
func differ(what string, want, got goldenAnswer, tolerance float64) error {
	if len(want.Probabilities) != len(got.Probabilities) {
		return &GoldenError{Detail: fmt.Sprintf("%s has %d probabilities where %d were given now", what, len(want.Probabilities), len(got.Probabilities))}
	}
	for i, a := range want.Probabilities {
		if b := got.Probabilities[i]; !(math.Abs(a-b) <= tolerance) {
			return &GoldenError{Detail: fmt.Sprintf("%s has %.4f where %.4f was given now, and may differ by %g", what, a, b, tolerance)}
		}
	}
	return nil
}

// known is the answer on record, nil if none has to be.
func (g Golden) known(info engine.Info, question string) (*goldenAnswer, error) {
	if g.File == "" {
		return nil, nil
	}
	file, err := readGolden(g.File)
	if err != nil && (!g.Record || !errors.Is(err, fs.ErrNotExist)) {
		missing := errors.Is(err, fs.ErrNotExist)
		return nil, &GoldenError{Missing: missing, File: !missing, Detail: "reading " + g.File + ": " + err.Error()}
	}
	answer, ok := file.Answers[info.Fingerprint]
	switch {
	case ok && answer.Question == question:
		return &answer, nil
	case g.Record:
		return nil, nil
	default:
		return nil, &GoldenError{Missing: true, Detail: fmt.Sprintf("%s has no answer for fingerprint %s", g.File, info.Fingerprint)}
	}
}

// maxGoldenFile is room for some hundred fingerprints.
const maxGoldenFile = 1 << 20

func readGolden(path string) (goldenFile, error) {
	var file goldenFile
	text, err := os.ReadFile(path)
	if err != nil {
		return file, err
	}
	return file, strictjson.Decode(text, strictjson.Limits{MaxBytes: maxGoldenFile, MaxKeys: 1 << 16}, &file)
}

// record adds an answer and replaces the file whole.
func (g Golden) record(info engine.Info, answer goldenAnswer) error {
	file, err := readGolden(g.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &GoldenError{File: true, Detail: "reading " + g.File + ": " + err.Error()}
	}
	if file.Answers == nil {
		file.Answers = map[string]goldenAnswer{}
	}
	file.Answers[info.Fingerprint] = answer
	text, err := json.Marshal(file, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("writing golden answer: %w", err)
	}
	if err := replaceFile(g.File, append(text, '\n')); err != nil {
		return &GoldenError{File: true, Detail: "recording the answer: " + err.Error()}
	}
	return nil
}

func replaceFile(path string, text []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".golden-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(text)
	if synced := errors.Join(err, f.Sync(), f.Close()); synced != nil {
		return synced
	}
	return os.Rename(f.Name(), path)
}
