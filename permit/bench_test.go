package permit

import "testing"

func BenchmarkVerify(b *testing.B) {
	w := newWorld(b)
	v := w.verify(b, w.keys, scripted{})
	token := w.sign(b, claims(b))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Verify(b.Context(), token, call()); err != nil {
			b.Fatal(err)
		}
	}
}
