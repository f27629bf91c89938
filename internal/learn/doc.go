// Package learn draws conclusions from labelled calls: temperatures for a decider, thresholds for a policy, and how often
// people approve. It proposes and applies nothing. It is pure: the same evidence gives the same proposals.
package learn
