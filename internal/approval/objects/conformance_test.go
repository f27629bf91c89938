package objects_test

import (
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"gatewright.dev/gatewright/internal/approval"
	"gatewright.dev/gatewright/internal/approval/conformance"
)

// Against a real API server with the admission policies in force, by the gate's service account with no more rights than
// the package asks for, and with people who decide with their own certificates.
func TestObjectsConform(t *testing.T) {
	cluster := install(t)
	conformance.Run(t, func(t *testing.T, c *clocktesting.FakePassiveClock) conformance.Subject {
		cluster.clear(t)
		s := seals(t, c)
		store := &people{cluster.open(t, c, s), t, cluster, c}
		return conformance.Subject{Store: store, Verify: s.Verify, People: approval.KubernetesUser, TellsTime: true}
	})
}
