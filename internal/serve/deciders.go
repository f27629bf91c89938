package serve

import (
	"errors"
	"fmt"
	"time"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/deciders"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/inference"
)

// embeddedInFlight is how many calls the embedded judge answers at once: it computes and waits for nothing.
const embeddedInFlight = 256

// longestTimeout is the most that a policy may give a decider; the policy's own is the one that counts.
const longestTimeout = 10 * time.Second

// serveDecider makes a decider of a manifest, which checkServed has let through. A decider of runtime LlamaCpp has its process.
func serveDecider(m *v1alpha1.DeciderModel, p *process, failuresToOpen int) (*gate.ServedDecider, *inference.Guard, error) {
	decider, err := newDecider(m, p)
	if err != nil {
		return nil, nil, err
	}
	served, guard := serveAs(m, p, decider, failuresToOpen)
	return served, guard, nil
}

// serveAs puts a decider behind a guard, as its manifest says that it may be asked.
func serveAs(m *v1alpha1.DeciderModel, p *process, decider inference.Decider, failuresToOpen int) (*gate.ServedDecider, *inference.Guard) {
	options := inference.GuardOptions{MaxInFlight: embeddedInFlight, Languages: m.Spec.Languages, Timeout: longestTimeout, FailuresToOpen: failuresToOpen}
	if m.Spec.External != nil {
		options.MaxInFlight = int(m.Spec.External.MaxInFlight)
	}
	if p != nil {
		options.MaxInFlight, options.MinTimeout, options.OpenFor, options.Life = 1, ownMinTimeout, ownOpenFor, p.child.Lives
	}
	guard := inference.NewGuard(decider, options)
	served := &gate.ServedDecider{
		Decider: guard, Allowed: m.Spec.AllowsNamespace,
		Verified:        m.Spec.Runtime == v1alpha1.RuntimeEmbedded || p != nil, // our own process hashed what it computes with
		RequireVerified: m.Spec.RequireVerified != v1alpha1.Optional,
	}
	if m.Spec.Artifact != nil {
		served.ModelHash = string(m.Spec.Artifact.SHA256)
	}
	if p != nil {
		served.ModelHash = p.hash // another one than the manifest's while the new process is not ready
	}
	return served, guard
}

// checkServed refuses what this binary would not do: a setting that has no effect must not look like one that has.
func checkServed(spec *v1alpha1.DeciderModelSpec) error {
	switch {
	case spec.Pod != nil:
		return errors.New("spec.pod: this binary runs no pods: remove it")
	case spec.Rollout != nil:
		return errors.New("spec.rollout: nothing is evaluated before this binary asks a decider: remove it, and run the evaluation beforehand")
	case spec.Runtime == v1alpha1.RuntimeLlamaCpp:
		return nil
	case spec.Readout != "" && spec.Readout != v1alpha1.ReadoutAuto:
		return errors.New("spec.readout: follows from spec.external.protocol here: remove it")
	case spec.Threads != nil:
		return errors.New("spec.threads: is for runtime LlamaCpp: remove it")
	}
	return nil
}

func newDecider(m *v1alpha1.DeciderModel, p *process) (inference.Decider, error) {
	switch m.Spec.Runtime {
	case v1alpha1.RuntimeEmbedded:
		return deciders.Embedded(&m.Spec)
	case v1alpha1.RuntimeExternal:
		return newExternal(&m.Spec)
	case v1alpha1.RuntimeLlamaCpp:
		return p.child, nil // it applies temperatures itself, and states a fingerprint that covers them
	case v1alpha1.RuntimeContainer:
	}
	return nil, fmt.Errorf("spec.runtime %s is not served by this binary: use Embedded, LlamaCpp, or External with the address of a server", m.Spec.Runtime)
}

func newExternal(spec *v1alpha1.DeciderModelSpec) (inference.Decider, error) {
	if spec.External.TokenSecretRef != nil {
		return nil, errors.New("spec.external.tokenSecretRef: secrets are not there outside of a cluster: run a proxy on loopback that adds the token")
	}
	return deciders.External(spec, nil)
}
