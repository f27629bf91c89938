package sources
import ("testing";"time";"strings";"fmt")
func TestTmp(t *testing.T){
 r := strings.Repeat
 gen := func(n int, f func(i int) string) map[string]any { l := []any{}; size:=0; for i:=0; size<n; i++ { s:=f(i); l=append(l,s); size+=len(s)+3 }; return map[string]any{"a":l} }
 type c struct{ name string; conv Conversation; args map[string]any }
 half := 500<<10
 sym := "!#$%&*+-./:=?@^_~"
 plain := func(i int) string { b := []byte{}; for k:=0;k<5;k++ { b=append(b, sym[i%len(sym)]); i/=len(sym) }; return string(b) }
 for _, x := range []c{
  {"distinct short", Conversation{UserTurns: []string{"hello"}}, gen(2*half, func(i int) string { return fmt.Sprint("v",i) })},
  {"distinct num strings", Conversation{UserTurns: []string{"hello"}}, gen(2*half, func(i int) string { return fmt.Sprint(i+100000) })},
  {"plain none", Conversation{UserTurns: []string{r("a ",half/2)}}, gen(half/8, plain)},
  {"plain many", Conversation{UserTurns: []string{r("*",half)}}, gen(half/64, func(i int) string { return r("*", i%300+1) })},
  {"xx", Conversation{UserTurns: []string{r("x-",half/2)}}, gen(half, func(i int) string { return "x"+plain(i)+"x" })},
  {"xspace", Conversation{UserTurns: []string{r("x x-",half/4)}}, gen(half, func(i int) string { return "x x"+plain(i) })},
  {"digits", Conversation{UserTurns: []string{r("1 2 3 4 5 6 ",half/12)}}, gen(half, func(i int) string { return fmt.Sprintf("1 2 3 4 5 6 1 2 3 4 5 6 %d",i) })},
  {"digits2", Conversation{UserTurns: []string{r("1-",half/2)}}, gen(half, func(i int) string { return r("1",i%40+6) })},
  {"group", Conversation{UserTurns: []string{r("1 11 111 1111 11111 ",half/20)}}, gen(half, func(i int) string { return r("1",40)+fmt.Sprint(i%100) })},
  {"name", Conversation{UserTurns: []string{r("aa bb_",half/6)}}, gen(half, func(i int) string { return "aa_"+r("bb-aa_",i%10)+"bb" })},
  {"long text", Conversation{UserTurns: []string{r("word other ",half/11)}}, map[string]any{"a": r("word ", half/5)}},
  {"long hard", Conversation{UserTurns: []string{r("w1.x-",half/5)}}, map[string]any{"a": r("w1.x ", half/5)}},
  {"long hard2", Conversation{UserTurns: []string{r("a@b.c,",half/6)}}, map[string]any{"a": r("a@b.c,", half/6)}},
  {"long distinct hard", Conversation{UserTurns: []string{r("a1-",half/3)}}, map[string]any{"a": func() string { var b strings.Builder; for i:=0;b.Len()<half;i++ { fmt.Fprintf(&b,"a1%sa1 ",plain(i)) }; return b.String() }()}},
  {"percent", Conversation{UserTurns: []string{r("%41",half/3)}}, map[string]any{"a": r("%41", half/3)}},
  {"percent2", Conversation{UserTurns: []string{r("a%41 ",half/5)}}, gen(half, func(i int) string { return "a%41"+fmt.Sprint(i) })},
  {"nfkc", Conversation{UserTurns: []string{r("\uFDFA",half/3)}}, map[string]any{"a": r("\uFDFA", half/3)}},
  {"nfkc2", Conversation{UserTurns: []string{"a"+r("\u0301\u0316",half/4)}}, map[string]any{"a": "a"+r("\u0301\u0316", half/4)}},
  {"marks", Conversation{UserTurns: []string{r("\u0301",half/2)}}, map[string]any{"a": r("\u0316\u0301", half/4)}},
  {"cf", Conversation{UserTurns: []string{r("\u200b",half/3)}}, map[string]any{"a": r("\u200b ", half/4)}},
  {"numbers words", Conversation{UserTurns: []string{r("million ",half/8)}}, map[string]any{"a": r("one ", half/4)}},
  {"hundred", Conversation{UserTurns: []string{r("one hundred and ",half/16)}}, map[string]any{"a": r("one ", half/4)}},
  {"1 thousand", Conversation{UserTurns: []string{r("1 thousand ",half/11),"1"+r(" k",half/2),"1 "+r("percent ",half/8)}}, map[string]any{"a": "x"}},
  {"dates", Conversation{UserTurns: []string{r("1/1/2020 ",half/9),r("may 1 ",half/6),r("12:30 ",half/6)}}, gen(half, func(i int) string { return fmt.Sprintf("%d/%d/%d",i%12+1,i%28+1,i+1000) })},
  {"digitrun", Conversation{UserTurns: []string{r("1",half)}}, map[string]any{"a": r("1", half)}},
  {"digitcomma", Conversation{UserTurns: []string{r("1,",half/2)}}, map[string]any{"a": r("1,1.1 ", half/6)}},
  {"digitdot", Conversation{UserTurns: []string{r("1.",half/2)}}, map[string]any{"a": r("1.", half/2)}},
  {"chain", Conversation{UserTurns: []string{r("a-",half/2)}}, map[string]any{"a": r("a-", half/2)}},
  {"label", Conversation{UserTurns: []string{r("a:1=",half/4)}}, map[string]any{"a": r("a:1=", half/4)}},
  {"5-a", Conversation{UserTurns: []string{r("5-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",half/34),"5-"+r("a",half)}}, map[string]any{"a": r("5-", half/2)}},
  {"han", Conversation{UserTurns: []string{r("\u4e00",half/3)}}, gen(half, func(i int) string { return r("\u4e00",i%100+1)+fmt.Sprint(i) })},
  {"dashes", Conversation{UserTurns: []string{r("--1",half/3)}}, map[string]any{"a": r("'", half)}},
  {"long1", Conversation{UserTurns: []string{r("x ",half/2)}}, map[string]any{"a": r("x ", half/2)}},
  {"long2", Conversation{UserTurns: []string{r("xy ",half/3)+" z"}}, gen(half, func(i int) string { return r("xy ",500)+fmt.Sprint("q",i) })},
  {"long3", Conversation{UserTurns: []string{r("xy ",half/3)}}, gen(half, func(i int) string { return r("xy ",500+i) })},
 } {
  st := time.Now(); x.conv.ToolResults = x.conv.UserTurns; x.conv.UserTurns = x.conv.ToolResults
  ix := NewIndex(x.conv); d1 := time.Since(st); st = time.Now(); f := ix.Trace(x.args, nil); d2 := time.Since(st)
  if d1+d2 > 250*time.Millisecond { t.Log(x.name, d1, d2, len(f)) }
 }
}
