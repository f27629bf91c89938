package llama

import "gatewright.dev/gatewright/internal/questions"

// goldenState and goldenQuestion are what every model is asked after it was loaded and before it serves: the answer is
// compared with the one that was recorded when its thresholds were fitted, within the tolerance recorded with it. They
// never change, or recorded answers would lose their meaning.
const goldenState = `{"tool":{"name":"cancel_order","class":"destructive"},"user_request":"Please cancel order 1042, I ordered it twice.",` +
	`"proposed_call":{"tool":"cancel_order","arguments":{"order":"1042"}}}`

var goldenQuestion = questions.Question{
	Name: "golden", Type: questions.YesNo,
	Instructions: "Does `proposed_call` cancel the order that the user named?",
	WhenTrue:     "It cancels the order that the user named.",
	WhenFalse:    "It cancels another order or does something else.",
}

// Golden is the state and question for the test of a loaded model: a fixed one, or the first that a class head answers.
func (e *Engine) Golden() (state []byte, q questions.Question) {
	if e.description.readout == ClassHead {
		q, _ = questions.Builtin(e.description.classes[0])
		return []byte(goldenState), q
	}
	return []byte(goldenState), goldenQuestion
}
