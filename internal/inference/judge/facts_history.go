package judge

// historyFacts say what went before the call.
var historyFacts = []Fact{
	{"same_tool", "1 if the tool was called before", Free, func(v *view) float64 { return number(v.sameTool) }},
	{"same_call", "1 if it was called before with the same values", Free, func(v *view) float64 { return number(v.sameCall) }},
	{"same_object", "1 if an earlier call was of a tool with an object in common", Free, func(v *view) float64 { return number(v.sameObject) }},
	{"any_call", "1 if any tool was called before", Free, func(v *view) float64 { return number(v.calls > 0) }},
	{"assistant_asks", "1 if the assistant's latest text holds a question", Free, func(v *view) float64 { return number(v.lastIsQuestion) }},
	{"class_rank", "0 read-only, 1 write, 2 external, 3 destructive; -1 if the policy has a name of its own for it", Free, func(v *view) float64 { return v.class }},
}
