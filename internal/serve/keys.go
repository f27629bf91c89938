package serve

import (
	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/keywatch"
	"gatewright.dev/gatewright/internal/permit"
	"gatewright.dev/gatewright/internal/records"
)

// keyFiles are all files of keys that this gate has.
func keyFiles(seals *approval.Seals, permits *permit.Keys, r *records.Records, tokens *tokenVerifier) []*keywatch.File {
	out := []*keywatch.File{keywatch.Ring("seal-key", seals.Keys()), keywatch.Ring("permit-key", permits.Ring())}
	out = append(out, r.KeyFiles()...)
	if tokens != nil {
		if file, ok := tokens.keys.(*keysInFile); ok {
			out = append(out, file.watched())
		}
	}
	return out
}
