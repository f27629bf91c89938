package approval

import "time"

// Retention is how long an approval stays to be looked at after it has ended.
const Retention time.Duration = retention

// NormalCall checks a call as every store does before it keeps one, and gives what is kept, which shares nothing with
// the call. Errors are ErrBadCall and ErrTooLarge.
func NormalCall(c Call) (Call, error) { return normalCall(c) }

// NewID gives 128 random bits in hexadecimal.
func NewID() string { return newID() }

// NamePrefix is what the names of all approvals with this binding start with; a number follows.
func (b Binding) NamePrefix() string { return b.prefix() }

// CompareNames orders names as stores do: by binding, then by number.
func CompareNames(a, b string) int { return compareNames(a, b) }
