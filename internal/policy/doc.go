// Package policy compiles tool policies and judges proposed calls by them. It is pure: no I/O, no client, no clock.
//
// A call's way through this package:
//
//	Set.Judge      selects the policies of the caller, classifies the tool, runs the rules of each policy
//	Judgement.Asks says which questions a decider has to answer, if any
//	Judgement.Settle applies the ladders to the answers, adds what irreversible calls need, and joins it all
//
// A verdict is a set of obligations, each with its reason. Policies only ever add obligations, so that adding a policy
// can make a verdict stricter and never weaker. What is shown is the strictest of them: Block, else Clarify, else
// Confirm, else Allow. Nothing here returns an error at judging time: what fails is an obligation too.
package policy

// EngineSemantics is raised when the same policy and call may be judged differently than before. It is part of the
// policy digest, so that approvals given under other semantics no longer match.
const EngineSemantics = "2"
