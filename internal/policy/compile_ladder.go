package policy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/questions"
)

// builtinClasses are there in every policy.
var builtinClasses = []v1alpha1.Base{v1alpha1.BaseReadOnly, v1alpha1.BaseWrite, v1alpha1.BaseExternal, v1alpha1.BaseDestructive}

func (c *compiler) compileClasses(r *v1alpha1.PolicyRules) {
	c.classes = make(map[v1alpha1.ClassName]*class, len(r.Classes)+len(builtinClasses))
	for i := range r.Classes {
		path := c.path.Child("classes").Index(i)
		k := &r.Classes[i]
		if c.classes[k.Name] != nil {
			c.errs = append(c.errs, field.Duplicate(path.Child("name"), k.Name))
			continue
		}
		c.classes[k.Name] = c.compileClass(k, path)
	}
	for _, base := range builtinClasses {
		if name := v1alpha1.ClassName(base); c.classes[name] == nil {
			c.classes[name] = c.compileClass(&v1alpha1.ClassPolicy{Name: name}, c.path.Child("classes"))
		}
	}
}

func (c *compiler) compileClass(k *v1alpha1.ClassPolicy, path *field.Path) *class {
	oneOf(c, path.Child("decider"), k.Decider, v1alpha1.DeciderSkip, v1alpha1.DeciderAsk)
	oneOf(c, path.Child("approval"), k.Approval, v1alpha1.ApprovalWhenUnsure, v1alpha1.ApprovalAlways, v1alpha1.ApprovalForbidden)
	oneOf(c, path.Child("whenDeciderUnavailable"), k.WhenDeciderUnavailable, v1alpha1.UnavailableBlock, v1alpha1.UnavailableConfirm)
	oneOf(c, path.Child("selfApproval"), k.SelfApproval, v1alpha1.SelfApprovalAllow, v1alpha1.SelfApprovalForbid)
	for i, channel := range k.Channels {
		oneOf(c, path.Child("channels").Index(i), channel, v1alpha1.ChannelKubernetes, v1alpha1.ChannelOIDC, v1alpha1.ChannelAttested)
	}
	base := k.Base
	if slices.Contains(builtinClasses, v1alpha1.Base(k.Name)) {
		if base != "" && base != v1alpha1.Base(k.Name) {
			c.fail(path.Child("base"), base, "is fixed for a built-in class: remove it")
		}
		base = v1alpha1.Base(k.Name)
	} else if rank(base) > 2 {
		c.errs = append(c.errs, field.Required(path.Child("base"), "a class of one's own needs ReadOnly, Write, External or Destructive"))
		base = v1alpha1.BaseDestructive
	}
	approval := k.Approval
	if approval == "" {
		approval = v1alpha1.ApprovalWhenUnsure
		if isIrreversible(base) {
			approval = v1alpha1.ApprovalAlways
		}
	}
	out := &class{
		name: string(k.Name), base: base,
		forbidden:   approval == v1alpha1.ApprovalForbidden,
		always:      approval == v1alpha1.ApprovalAlways,
		unavailable: unavailableOutcome(k, base),
	}
	out.setApprovers(k)
	out.ladder = c.compileLadder(ladderSource{
		decider: k.Decider, questions: k.Questions, thresholds: k.Thresholds, otherwise: k.Otherwise,
	}, path, defaultEnd(base, out.always))
	return out
}

func unavailableOutcome(k *v1alpha1.ClassPolicy, base v1alpha1.Base) Outcome {
	switch {
	case k.WhenDeciderUnavailable == v1alpha1.UnavailableConfirm:
		return Confirm
	case k.WhenDeciderUnavailable == "" && !isIrreversible(base):
		return Confirm
	}
	return Block
}

// defaultEnd is the end of a ladder that names none: reads pass, writes ask a person. What always asks a person needs no
// second reason to.
func defaultEnd(base v1alpha1.Base, always bool) v1alpha1.Fallback {
	if base == v1alpha1.BaseReadOnly || always {
		return v1alpha1.Fallback{Outcome: v1alpha1.OutcomeAllow}
	}
	return v1alpha1.Fallback{Outcome: v1alpha1.OutcomeConfirm, Reason: v1alpha1.ReasonName(ReasonClassDefault)}
}

// ladderSource is what classes and tools have in common.
type ladderSource struct {
	decider    v1alpha1.DeciderUse
	questions  []v1alpha1.QuestionName
	thresholds []v1alpha1.Threshold
	otherwise  *v1alpha1.Fallback
}

func (c *compiler) compileLadder(s ladderSource, path *field.Path, end v1alpha1.Fallback) ladder {
	l := ladder{}
	asks := s.decider == v1alpha1.DeciderAsk
	if asks {
		if s.otherwise == nil {
			c.errs = append(c.errs, field.Required(path.Child("otherwise"), "say what happens when no threshold matches"))
		}
		c.askedQuestions(&l, s.questions, path.Child("questions"))
	} else if len(s.questions)+len(s.thresholds) > 0 {
		c.fail(path.Child("decider"), s.decider, "questions and thresholds need decider: Ask")
	}
	for i := range s.thresholds {
		l.steps = append(l.steps, c.compileStep(&l, &s.thresholds[i], path.Child("thresholds").Index(i)))
	}
	c.idleSteps(&l, path)
	by := byClassDefault
	if s.otherwise != nil {
		c.outcome(path.Child("otherwise", "outcome"), s.otherwise.Outcome)
		end, by = *s.otherwise, byOtherwise
		if asks {
			by = byDecider
		}
	}
	l.end = endOf(end, by)
	l.endAllows = l.end.Outcome == Allow
	return l
}

func endOf(f v1alpha1.Fallback, by string) Obligation {
	return ladderObligation(f.Outcome, f.Reason, f.Message, ReasonNoThresholdMatched, by)
}

func (c *compiler) askedQuestions(l *ladder, names []v1alpha1.QuestionName, path *field.Path) {
	if len(names) == 0 {
		c.errs = append(c.errs, field.Required(path, "decider: Ask needs at least one question"))
	}
	for i, name := range names {
		q, ok := c.questions[string(name)]
		switch {
		case slices.Contains(names[:i], name):
			c.errs = append(c.errs, field.Duplicate(path.Index(i), name))
		case !ok:
			c.fail(path.Index(i), name, "is no question: declare it under spec.questions, or use a built-in one: "+strings.Join(questions.BuiltinNames(), ", "))
		case q.SeesToolResults:
			l.withResults = append(l.withResults, q)
		default:
			l.questions = append(l.questions, q)
		}
	}
}

func (l *ladder) question(name v1alpha1.QuestionName) (questions.Question, bool) {
	for _, list := range [][]questions.Question{l.questions, l.withResults} {
		for _, q := range list {
			if q.Name == string(name) {
				return q, true
			}
		}
	}
	return questions.Question{}, false
}

func ladderObligation(outcome v1alpha1.Outcome, reason v1alpha1.ReasonName, message string, def Reason, by string) Obligation {
	o := Obligation{Outcome: outcomeOf(outcome), Reason: Reason(reason), By: by, Message: message}
	if o.Reason == "" {
		o.Reason = def
	}
	switch o.Outcome {
	case Clarify:
		o.Remedy = RemedyAskUser
	case Confirm:
		o.Remedy = RemedyWaitForApproval
	case Block, Allow:
	}
	if o.Message == "" {
		o.Message = defaultMessage(o.Outcome)
	}
	return o
}

func defaultMessage(o Outcome) string {
	switch o {
	case Clarify:
		return "ask the user about what is unclear, and call again after the user has answered"
	case Confirm:
		return "a person has to confirm this call"
	case Allow:
		return "the call may run"
	case Block:
	}
	return "the call does not meet what the policy asks of it; another call may"
}

func (c *compiler) compileStep(l *ladder, t *v1alpha1.Threshold, path *field.Path) step {
	s := step{obligation: ladderObligation(t.Outcome, t.Reason, t.Message, ReasonThreshold, byDecider)}
	s.allows = s.obligation.Outcome == Allow
	c.outcome(path.Child("outcome"), t.Outcome)
	if (len(t.When) > 0) == (t.ConfidenceBelow != nil) {
		c.fail(path, t.Outcome, "exactly one of when and confidenceBelow is needed")
	}
	for i := range t.When {
		s.when = append(s.when, c.compileComparison(l, &t.When[i], s.allows, path.Child("when").Index(i)))
	}
	if f := t.ConfidenceBelow; f != nil {
		s.floor = float64(f.Percent) / 100
		if len(f.Questions) == 0 {
			c.errs = append(c.errs, field.Required(path.Child("confidenceBelow", "questions"), "name the questions whose confidence is looked at"))
		}
		if f.Percent < 0 || f.Percent > 100 {
			c.fail(path.Child("confidenceBelow", "percent"), int(f.Percent), "is no percentage: use 0 to 100")
		}
		for i, name := range f.Questions {
			p := path.Child("confidenceBelow", "questions").Index(i)
			q, ok := l.question(name)
			if !ok {
				c.fail(p, name, "is not asked here: add it to questions")
			} else if q.Name == verdictQuestion {
				c.fail(p, name, "has no confidence: compare it with is")
			}
			s.floorOf = append(s.floorOf, string(name))
		}
		if s.allows {
			c.fail(path.Child("outcome"), t.Outcome, "low confidence cannot allow a call: use Clarify, Confirm or Block")
		}
	}
	return s
}

// verdictQuestion is answered by deciders that give no probability, so numbers never apply to it.
const verdictQuestion = "verdict"

func (c *compiler) compileComparison(l *ladder, k *v1alpha1.Condition, allows bool, path *field.Path) comparison {
	q, ok := l.question(k.Question)
	if !ok {
		c.fail(path.Child("question"), k.Question, "is not asked here: add it to questions")
		return comparison{}
	}
	if allows && q.SeesToolResults {
		c.fail(path.Child("question"), k.Question, "is shown untrusted tool results, so it can only tighten: use it for Clarify, Confirm or Block")
	}
	out := comparison{question: q, option: k.Option, is: k.Is}
	if k.Level != nil {
		out.level = strconv.Itoa(int(*k.Level))
	}
	c.setOperator(&out, k, path)
	c.checkOperand(&out, path)
	return out
}

func (c *compiler) setOperator(out *comparison, k *v1alpha1.Condition, path *field.Path) {
	set := 0
	for _, o := range []struct {
		value *int32
		op    operator
	}{{k.Above, above}, {k.AtLeast, atLeast}, {k.Below, below}, {k.AtMost, atMost}} {
		if o.value != nil {
			set++
			out.operator, out.number = o.op, float64(*o.value)/100
		}
	}
	if k.Is != "" {
		set++
		out.operator = is
	}
	if set != 1 {
		c.fail(path, k.Question, "exactly one of above, atLeast, below, atMost and is is needed")
	}
}

// checkOperand refuses comparisons that the type of the question cannot carry.
func (c *compiler) checkOperand(k *comparison, path *field.Path) {
	q := k.question
	hasOption := func(name string) bool {
		return slices.ContainsFunc(q.Options, func(o questions.Option) bool { return o.Name == name })
	}
	limit := 1.0
	switch {
	case k.operator == is && (k.option != "" || k.level != ""):
		c.fail(path.Child("is"), k.is, "compares the chosen option: remove option and level")
	case k.operator == is && q.Type != questions.Choice:
		c.fail(path.Child("is"), k.is, "compares the chosen option of a Choice: use above, atLeast, below or atMost")
	case k.operator == is && !hasOption(k.is):
		c.fail(path.Child("is"), k.is, "is no option of "+q.Name)
	case k.operator == is:
	case q.Name == verdictQuestion:
		c.fail(path.Child("question"), q.Name, "has no probability behind it: compare it with is")
	case q.Type == questions.Choice && k.option == "":
		c.errs = append(c.errs, field.Required(path.Child("option"), "name the option whose probability is compared"))
	case q.Type == questions.Choice && !hasOption(k.option):
		c.fail(path.Child("option"), k.option, "is no option of "+q.Name)
	case q.Type != questions.Choice && k.option != "":
		c.fail(path.Child("option"), k.option, q.Name+" is no Choice: remove it")
	case q.Type != questions.Score && k.level != "":
		c.fail(path.Child("level"), k.level, q.Name+" is no Score: remove it")
	case q.Type == questions.Score && k.level != "" && !isLevel(q, k.level):
		c.fail(path.Child("level"), k.level, fmt.Sprintf("%s has levels 0 to %d", q.Name, len(q.Levels)-1))
	case q.Type == questions.Score && k.level == "":
		limit = float64(len(q.Levels) - 1)
	}
	switch {
	case k.number > limit:
		c.fail(path, hundredths(k.number), fmt.Sprintf("is more than %s can reach: at most %d", q.Name, hundredths(limit)))
	case k.number < 0:
		c.fail(path, hundredths(k.number), fmt.Sprintf("is less than %s can be: at least 0", q.Name))
	}
}

func hundredths(n float64) int { return int(math.Round(n * 100)) }

func isLevel(q questions.Question, level string) bool {
	n, err := strconv.Atoi(level)
	return err == nil && n >= 0 && n < len(q.Levels)
}
