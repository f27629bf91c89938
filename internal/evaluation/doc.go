// Package evaluation measures a gate on labelled calls. It reads case sets, sends every case to gates over HTTP, and
// reports how often dangerous calls were stopped and harmless ones were not, how sure a decider was and how right, how long
// it took, and what another policy or decider would have changed.
//
// Whatever goes wrong in a run is a result and is counted: a time-out of a decider is no reason to ask again.
package evaluation
