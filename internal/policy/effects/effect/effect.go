// Package effect says how bad a call may be: it reads, writes, deletes, sends, or any of these.
package effect

// Set holds what a call may do. The order is Reads < Writes < {Deletes, Sends}: whoever deletes or sends also writes.
// The zero Set means that nothing is known, and counts as Worst.
type Set uint8

// The single effects.
const (
	Reads Set = 1 << iota
	Writes
	Deletes
	Sends
)

// Worst is the effect of whatever cannot be understood.
const Worst = Reads | Writes | Deletes | Sends

// IsRead tells whether reading is all that can happen.
func (s Set) IsRead() bool { return s == Reads }

// Writes tells whether something may be changed.
func (s Set) Writes() bool { return s.known()&(Writes|Deletes|Sends) != 0 }

// Deletes tells whether something may be gone afterwards.
func (s Set) Deletes() bool { return s.known()&Deletes != 0 }

// Sends tells whether something may leave the system.
func (s Set) Sends() bool { return s.known()&Sends != 0 }

// known is s, with the zero Set and undefined bits read as Worst.
func (s Set) known() Set {
	if s == 0 || s > Worst {
		return Worst
	}
	return s
}
