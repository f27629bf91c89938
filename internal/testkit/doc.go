// Package testkit builds objects for tests. What it builds is valid; a test changes the one thing that it is about.
package testkit

// The caller that policies of this package are about, unless a test says otherwise.
const (
	Namespace      = "shop"
	ServiceAccount = "agent"
)

// Fingerprint that policies of this package pin their decider to.
const Fingerprint = "judge-1"
