package approval

import (
	"reflect"
	"testing"
)

func TestBindingCoversEveryField(t *testing.T) {
	base := call().Binding
	for i := range reflect.TypeFor[Binding]().NumField() {
		field := reflect.TypeFor[Binding]().Field(i)
		t.Run(field.Name, func(t *testing.T) {
			other := base
			v := reflect.ValueOf(&other).Elem().Field(i)
			if field.Name == "ConfirmReasons" {
				other.ConfirmReasons = []string{"Irreversible", "Unsure"}
				if other.Key() != base.Key() {
					t.Error("the key covers the reasons")
				}
			} else {
				v.SetString(v.String() + "x")
				if other.Key() == base.Key() {
					t.Error("the key does not cover it")
				}
			}
			if other.Digest() == base.Digest() || other.prefix() == base.prefix() {
				t.Error("the digest does not cover it")
			}
		})
	}
}

func TestBindingsThatLookAlikeDiffer(t *testing.T) {
	for name, pair := range map[string][2]Binding{
		"a letter moves to the next field":      {{Server: "bc", Tool: "a"}, {Server: "b", Tool: "ca"}},
		"a field is empty and the next is not":  {{Server: "a"}, {Tool: "a"}},
		"one reason looks like two":             {{ConfirmReasons: []string{"AB"}}, {ConfirmReasons: []string{"A", "B"}}},
		"a reason looks like the field before":  {{UserTurnsDigest: "A"}, {ConfirmReasons: []string{"A"}}},
		"no reason and an empty one":            {{}, {ConfirmReasons: []string{""}}},
		"a length is written into a field":      {{Server: "\x00\x00\x00\x00\x00\x00\x00\x01a"}, {Server: "", Tool: "a"}},
		"upper and lower case":                  {{Tool: "Refund"}, {Tool: "refund"}},
		"two ways to write the same character":  {{Tool: "\u00e9"}, {Tool: "e\u0301"}},
		"quotes and separators within a string": {{Caller: `a","b`}, {Caller: "a", Server: "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if pair[0].Digest() == pair[1].Digest() {
				t.Error("they have the same digest")
			}
		})
	}
}

func TestDigestIsPinned(t *testing.T) {
	const want = "sha256:788e9d08fba04e6a184905bc398f628936739dfd65011e172c1f2b46cfb825a7"
	if got := call().Digest(); got != want {
		t.Errorf("Digest = %s, want %s: approvals that wait would be orphaned", got, want)
	}
	if call().Digest() == call().Key() {
		t.Error("digest and key are the same")
	}
}

func FuzzBindingDigest(f *testing.F) {
	f.Add("a", "bc", "ab", "c", "r", "s")
	f.Add("", "a", "a", "", "", "")
	f.Fuzz(func(t *testing.T, server1, tool1, server2, tool2, reason1, reason2 string) {
		x := Binding{Server: server1, Tool: tool1, ConfirmReasons: []string{reason1}}
		y := Binding{Server: server2, Tool: tool2, ConfirmReasons: []string{reason2}}
		equal := server1 == server2 && tool1 == tool2
		if got := x.Key() == y.Key(); got != equal {
			t.Errorf("keys equal: %t, want %t", got, equal)
		}
		equal = equal && reason1 == reason2
		if got := x.Digest() == y.Digest(); got != equal {
			t.Errorf("digests equal: %t, want %t", got, equal)
		}
	})
}
