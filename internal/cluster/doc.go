// Package cluster ties a gate to an API server: who calls, which policies and deciders are in force, whether that is still
// known to be so, and what the gate says that it serves. Nothing of it is waited for on a call's way but what a cache could
// not answer about the caller.
package cluster
