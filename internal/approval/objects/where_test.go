package objects_test

import (
	"errors"
	"testing"

	"k8s.io/client-go/rest"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approval/objects"
)

// That nothing is known is not that there is nothing.
func TestWhereApprovalsAreIsNotSaidBeforeTheCacheIsFilled(t *testing.T) {
	clock := atNoon()
	store, err := objects.New(objects.Options{Config: &rest.Config{Host: "http://127.0.0.1:1"}, Identity: "gate-0", Seals: seals(t, clock), Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	for _, name := range []string{"", "ta-1"} {
		if where, err := store.Where(name); !errors.Is(err, approval.ErrUnavailable) || where != nil {
			t.Errorf("%q: %q, %v", name, where, err)
		}
		if a, err := store.Known(name); !errors.Is(err, approval.ErrUnavailable) {
			t.Errorf("%q: %+v, %v", name, a, err)
		}
	}
}
