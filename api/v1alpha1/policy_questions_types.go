package v1alpha1

// QuestionType is the type of a question, and so of its answer.
//
// +kubebuilder:validation:Enum=YesNo;Choice;Score
type QuestionType string

// Question types.
const (
	QuestionYesNo  QuestionType = "YesNo"
	QuestionChoice QuestionType = "Choice"
	QuestionScore  QuestionType = "Score"
)

// SeenContent is untrusted content that a question is shown.
//
// +kubebuilder:validation:Enum=ToolResults
type SeenContent string

// SeesToolResults shows tool results to a question, in a request of its own; its answer can only tighten.
const SeesToolResults SeenContent = "ToolResults"

// Question is one typed question about a proposed call.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'YesNo' || !has(self.yesNo)",message="yesNo is only for type YesNo: remove it or change type"
// +kubebuilder:validation:XValidation:rule="self.type == 'Choice' ? has(self.choice) : !has(self.choice)",message="choice is required for type Choice and only allowed there: set choice.options, or change type"
// +kubebuilder:validation:XValidation:rule="self.type == 'Score' ? has(self.score) : !has(self.score)",message="score is required for type Score and only allowed there: set score.levels, or change type"
type Question struct {
	// name by which thresholds refer to it. A built-in name is refused: its text is versioned.
	// +required
	Name QuestionName `json:"name"`
	// type of the answer.
	// +required
	Type QuestionType `json:"type"`
	// instructions is the question itself: one narrow judgment, with the rule in the text.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2000
	Instructions string `json:"instructions"`
	// yesNo describes both answers.
	// +optional
	YesNo *YesNoCriteria `json:"yesNo,omitempty"`
	// choice lists the options.
	// +optional
	Choice *ChoiceCriteria `json:"choice,omitempty"`
	// score lists the levels.
	// +optional
	Score *ScoreCriteria `json:"score,omitempty"`
	// sees names untrusted content to show. Such a question is asked in a request of its own, and thresholds may use
	// it only towards Clarify, Confirm and Block.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=1
	Sees []SeenContent `json:"sees,omitempty"`
}

// YesNoCriteria describes both answers of a YesNo question.
type YesNoCriteria struct {
	// whenTrue describes yes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=500
	WhenTrue string `json:"whenTrue"`
	// whenFalse describes no.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=500
	WhenFalse string `json:"whenFalse"`
}

// ChoiceCriteria lists the options of a Choice question, at most 26, the most that every readout can label.
type ChoiceCriteria struct {
	// options in the order in which they are asked.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=26
	Options []ChoiceOption `json:"options"`
}

// ChoiceOption is one option of a Choice question.
type ChoiceOption struct {
	// name of the option, as thresholds refer to it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_.-]*$`
	Name string `json:"name"`
	// description of what it means.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	Description string `json:"description,omitempty"`
}

// ScoreCriteria lists the levels of a Score question, lowest first.
type ScoreCriteria struct {
	// levels in words, the first is level 0.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=500
	Levels []string `json:"levels"`
}
