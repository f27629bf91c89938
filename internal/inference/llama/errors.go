package llama

import (
	"errors"
	"fmt"

	"gatewright.dev/gatewright/internal/inference/llama/gguf"
)

// Reason says in one word why a model was not loaded. Nothing was loaded then.
type Reason string

// The reasons.
const (
	// OptionsWrong: the caller asked for something that cannot be.
	OptionsWrong Reason = "OptionsWrong"
	// ModelUnreadable: the file cannot be opened or read.
	ModelUnreadable Reason = "ModelUnreadable"
	// ModelHashMismatch: the file is not the pinned one. Want and Got are set.
	ModelHashMismatch Reason = "ModelHashMismatch"
	// NotGGUF: the file has another format, or a version of it that is not read.
	NotGGUF Reason = "NotGGUF"
	// ModelTruncated: the file ends before its tensors do.
	ModelTruncated Reason = "ModelTruncated"
	// ModelMalformed: the header contradicts itself, lacks what every model has, or the engine refused it.
	ModelMalformed Reason = "ModelMalformed"
	// ArchitectureNotSupported: a kind of model that this binding was not made for.
	ArchitectureNotSupported Reason = "ArchitectureNotSupported"
	// DecisionModelNotSupported: a model with a decision interface of its own, which this read-out cannot serve.
	DecisionModelNotSupported Reason = "DecisionModelNotSupported"
	// NoClassHead: an encoder without a class head: it makes vectors and no answers.
	NoClassHead Reason = "NoClassHead"
	// LabelsNotSupported: the answers' letters are not one token each, or a class head's labels are no built-in questions.
	LabelsNotSupported Reason = "LabelsNotSupported"
	// TemplateNotSupported: the chat template cannot be rendered here exactly.
	TemplateNotSupported Reason = "TemplateNotSupported"
	// WindowTooSmall: the model reads fewer tokens than asked for, or too few to hold a question.
	WindowTooSmall Reason = "WindowTooSmall"
	// MemoryTooSmall: the model and its cache do not fit into the memory that this process may use.
	MemoryTooSmall Reason = "MemoryTooSmall"
	// LibraryMissing: a file of the engine's library, or one that it needs, is not there or does not open.
	LibraryMissing Reason = "LibraryMissing"
	// LibraryMismatch: a file of the library is not the one that this binding was made for. Want and Got are set.
	LibraryMismatch Reason = "LibraryMismatch"
)

// Reasons lists all reasons, for tables that must be complete.
func Reasons() []Reason {
	return []Reason{OptionsWrong, ModelUnreadable, ModelHashMismatch, NotGGUF, ModelTruncated, ModelMalformed, ArchitectureNotSupported,
		DecisionModelNotSupported, NoClassHead, LabelsNotSupported, TemplateNotSupported, WindowTooSmall, MemoryTooSmall,
		LibraryMissing, LibraryMismatch}
}

// LoadError is every error of Open, and that of Verify when the bytes have changed.
type LoadError struct {
	Reason Reason
	Detail string
	// Want and Got are SHA-256 in hexadecimal digits, where a hash was compared.
	Want, Got string
	cause     error
}

func (e *LoadError) Error() string {
	if e.Want == "" {
		return fmt.Sprintf("%s: %s", e.Reason, e.Detail)
	}
	return fmt.Sprintf("%s: %s: want SHA-256 %s, got %s", e.Reason, e.Detail, e.Want, e.Got)
}

// Unwrap gives the error of a context that ended while the file was copied, and of the copying itself.
func (e *LoadError) Unwrap() error { return e.cause }

// ReasonOf returns the reason of an error, empty if it is not a LoadError.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*LoadError](err); ok {
		return e.Reason
	}
	return ""
}

func refuse(r Reason, format string, args ...any) error {
	return &LoadError{Reason: r, Detail: fmt.Sprintf(format, args...)}
}

// headerError gives the error of a header a reason.
func headerError(err error) error {
	switch gguf.FaultOf(err) {
	case gguf.NotGGUF, gguf.Version:
		return refuse(NotGGUF, "%v", err)
	case gguf.Truncated:
		return refuse(ModelTruncated, "%v", err)
	case gguf.Malformed:
		return refuse(ModelMalformed, "%v", err)
	default:
		return refuse(ModelUnreadable, "reading the header: %v", err)
	}
}
