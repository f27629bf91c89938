package sources_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gatewright.dev/gatewright/internal/policy/sources"
)

// says is a conversation in which only the user spoke.
func says(turns ...string) sources.Conversation { return sources.Conversation{UserTurns: turns} }

type traceCase struct {
	conversation sources.Conversation
	value        any
	schema       any // of the one argument
	wantSource   sources.Source
	wantMatch    sources.Match
}

func runTraces(t *testing.T, cases map[string]traceCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			schema := map[string]any{"type": "object", "properties": map[string]any{"v": tc.schema}}
			got := sources.NewIndex(tc.conversation).Trace(map[string]any{"v": tc.value}, sources.NewSchema(schema))
			if len(got) != 1 {
				t.Fatalf("got %d findings for one leaf: %v", len(got), got)
			}
			got[0].Seen = 0
			want := sources.Finding{Pointer: "/v", Source: tc.wantSource, Match: tc.wantMatch}
			if diff := cmp.Diff(want, got[0]); diff != "" {
				t.Errorf("finding of %v (-want +got):\n%s", tc.value, diff)
			}
		})
	}
}

func TestNumbersInOtherSpellings(t *testing.T) {
	t.Parallel()
	const user, nowhere, exact, rewritten, none = sources.User, sources.Nowhere, sources.Exact, sources.Rewritten, sources.None
	runTraces(t, map[string]traceCase{
		"plain digits are exact":                              {says("scale to 5 replicas"), 5.0, nil, user, exact},
		"an int64 is a number too":                            {says("scale to 5 replicas"), int64(5), nil, user, exact},
		"a trailing zero changes nothing":                     {says("pay 25.50 now"), 25.5, nil, user, exact},
		"grouped thousands":                                   {says("send 1,000 euros"), 1000.0, nil, user, exact},
		"grouped thousands with cents":                        {says("send $12,345.60 to me"), 12345.6, nil, user, exact},
		"European grouping":                                   {says("send 12.345,60 to me"), 12345.6, nil, user, exact},
		"a decimal comma":                                     {says("es kostet 12,50 €"), 12.5, nil, user, exact},
		"k is a thousand":                                     {says("send 1k"), 1000.0, nil, user, rewritten},
		"a fraction of k":                                     {says("send 2.5k"), 2500.0, nil, user, rewritten},
		"number words":                                        {says("send one thousand dollars"), 1000.0, nil, user, rewritten},
		"a hundred":                                           {says("send a hundred"), 100.0, nil, user, rewritten},
		"long number words":                                   {says("two thousand five hundred and six"), 2506.0, nil, user, rewritten},
		"hyphenated number words":                             {says("twenty-five people"), 25.0, nil, user, rewritten},
		"two number words in a row are two numbers":           {says("one two"), 12.0, nil, nowhere, none},
		"digits with a scale word":                            {says("1.5 million rows"), 1500000.0, nil, user, rewritten},
		"a percentage as fraction":                            {says("sample 50% of them"), 0.5, nil, user, rewritten},
		"percent in words":                                    {says("sample fifty percent"), 0.5, nil, user, rewritten},
		"a percentage as it stands":                           {says("sample 50% of them"), 50.0, nil, user, exact},
		"a percentage as text for a fraction":                 {says("sample 0.5 of them"), "50%", nil, user, rewritten},
		"half":                                                {says("use half of it"), 0.5, nil, user, rewritten},
		"a dozen":                                             {says("a dozen eggs"), 12.0, nil, user, rewritten},
		"an ordinal":                                          {says("the 3rd row"), 3.0, nil, user, rewritten},
		"a unit without blank":                                {says("allow 5GB"), 5.0, nil, user, rewritten},
		"a unit in another spelling":                          {says("wait for 30 seconds"), "30s", nil, user, rewritten},
		"another unit does not count":                         {says("allow 5 MB"), "5 GB", nil, nowhere, none},
		"another currency does not count":                     {says("pay $50"), "50 EUR", nil, nowhere, none},
		"a currency sign for its code":                        {says("pay $1,000"), "1000 USD", nil, user, rewritten},
		"a number before a hyphenated word":                   {says("a 3-day trip"), 3.0, nil, user, exact},
		"the ends of a range":                                 {says("between 10-20 pods"), 20.0, nil, user, exact},
		"a negative number":                                   {says("set it to -5 degrees"), -5.0, nil, user, exact},
		"a negative number is not its opposite":               {says("set it to -5"), 5.0, nil, nowhere, none},
		"a positive number is not its opposite":               {says("set it to 5"), -5.0, nil, nowhere, none},
		"a numeric string":                                    {says("send 1,000 euros"), "1000", nil, user, exact},
		"digits inside a longer number do not count":          {says("order 12345"), 234.0, nil, nowhere, none},
		"leading digits of a longer number do not count":      {says("order 12345"), 12.0, nil, nowhere, none},
		"the whole part of a decimal does not count":          {says("pay 5.75"), 5.0, nil, nowhere, none},
		"a group of thousands does not count":                 {says("pay 1,500"), 500.0, nil, nowhere, none},
		"a group of thousands does not count as text":         {says("pay 1,500"), "1", nil, nowhere, none},
		"digits inside an identifier do not count":            {says("restart web-7"), 7.0, nil, nowhere, none},
		"digits inside a version do not count":                {says("use v1.2.3"), 2.0, nil, nowhere, none},
		"digits inside an address do not count":               {says("ping 10.0.0.1"), 10.0, nil, nowhere, none},
		"digits inside a card number do not count":            {says("card 1234-5678-9012"), 5678.0, nil, nowhere, none},
		"digits inside a time do not count":                   {says("at 10:30"), 30.0, nil, nowhere, none},
		"digits inside a date do not count":                   {says("on 2024-05-01"), 5.0, nil, nowhere, none},
		"a port behind a name counts":                         {says("open localhost:8080"), 8080.0, nil, user, exact},
		"a long number is never rounded":                      {says("account 12345678901234567891"), "12345678901234567890", nil, nowhere, none},
		"grouped digits of a telephone number":                {says("call (555) 123-4567"), "5551234567", nil, user, rewritten},
		"ungrouped digits of a telephone number":              {says("call 5551234567"), "555-123-4567", nil, user, rewritten},
		"a card written in groups":                            {says("card 4111 1111 1111 1111"), "4111111111111111", nil, user, rewritten},
		"the first groups of a card do not count":             {says("card 4111 1111 1111 1111"), "41111111", nil, nowhere, none},
		"the last groups of a card do not count":              {says("card 4111 1111 1111 1112"), "11111112", nil, nowhere, none},
		"an IBAN written in groups":                           {says("to DE89 3704 0044 0532 0130 00 please"), "DE89370400440532013000", nil, user, rewritten},
		"an IBAN that differs in one digit":                   {says("to DE89 3704 0044 0532 0130 00 please"), "DE89370400440532013001", nil, nowhere, none},
		"a leading zero makes a code":                         {says("pin 7"), "007", nil, nowhere, none},
		"a code is found as it stands":                        {says("pin 007"), "007", nil, user, exact},
		"a number with so many digits that no one reads them": {says("pay 1000"), 1e300, nil, nowhere, none},
	})
}

func TestDatesAndTimesInOtherSpellings(t *testing.T) {
	t.Parallel()
	const user, nowhere, exact, rewritten, partial, none = sources.User, sources.Nowhere, sources.Exact, sources.Rewritten, sources.Partial, sources.None
	runTraces(t, map[string]traceCase{
		"the same date":                               {says("on 2024-05-01 please"), "2024-05-01", nil, user, exact},
		"month and day":                               {says("book it for May 1st"), "2024-05-01", nil, user, rewritten},
		"day and month":                               {says("book it for 1 May"), "2024-05-01", nil, user, rewritten},
		"the day of the month":                        {says("on the 1st of May, 2024"), "2024-05-01", nil, user, rewritten},
		"an abbreviated month with a point":           {says("on Sept. 3rd"), "2024-09-03", nil, user, rewritten},
		"month and day in slashes":                    {says("on 5/1"), "2024-05-01", nil, user, rewritten},
		"day and month in slashes":                    {says("on 1/5"), "2024-05-01", nil, user, rewritten},
		"a full date in slashes":                      {says("on 05/01/2024"), "2024-05-01", nil, user, rewritten},
		"a full date with points":                     {says("am 1.5.2024 bitte"), "2024-05-01", nil, user, rewritten},
		"a written date for ISO in the text":          {says("on 2024-05-01"), "May 1, 2024", nil, user, rewritten},
		"another year":                                {says("on May 1st, 2023"), "2024-05-01", nil, nowhere, none},
		"another day":                                 {says("on May 11th"), "2024-05-01", nil, nowhere, none},
		"another month":                               {says("on June 1st"), "2024-05-01", nil, nowhere, none},
		"a day without its month is a part":           {says("on the 15th"), "2024-05-15", nil, user, partial},
		"tomorrow is a part":                          {says("book it for tomorrow"), "2024-05-15", nil, user, partial},
		"next week is a part":                         {says("book it for next week"), "2024-05-15", nil, user, partial},
		"a relative word does not give a time of day": {says("book it for tomorrow"), "20:00", nil, nowhere, none},
		"24 hours for pm":                             {says("at 2:30 pm"), "14:30", nil, user, rewritten},
		"pm for 24 hours":                             {says("at 14:30"), "2:30 PM", nil, user, rewritten},
		"p.m. with points and seconds in the value":   {says("at 2 p.m. sharp"), "14:00:00", nil, user, rewritten},
		"am is not pm":                                {says("at 2:30 am"), "14:30", nil, nowhere, none},
		"midnight hour":                               {says("at 12:15 am"), "00:15", nil, user, rewritten},
		"noon":                                        {says("at noon"), "12:00", nil, user, rewritten},
		"an hour without am or pm is a part":          {says("meet at 2"), "14:00", nil, user, partial},
		"a clock without am or pm may be the evening": {says("meet at 7:30"), "19:30", nil, user, partial},
		"the morning is a part":                       {says("in the morning"), "08:00", nil, user, partial},
		"date and time":                               {says("on May 1st at 2:30 pm"), "2024-05-01T14:30:00Z", nil, user, rewritten},
		"date and time of an ISO text":                {says("from 2024-05-01T14:30:00+02:00 on"), "2024-05-01 14:30", nil, user, rewritten},
		"only the date of both":                       {says("on May 1st"), "2024-05-01 14:30", nil, user, partial},
		"the whole day":                               {says("on May 1st"), "2024-05-01 23:59:59", nil, user, rewritten},
		"the date of an ISO time":                     {says("from 2024-05-01T14:30 on"), "2024-05-01", nil, user, rewritten},
		"a range of times":                            {says("10:30-11:30"), "11:30", nil, user, rewritten},
		"the year of a date is a number":              {says("on May 1st, 2024"), 2024.0, nil, user, exact},
		"a longer chain of digits is no date":         {says("release 2024-05-01-7"), "2024-05-02", nil, nowhere, none},
		"hardware addresses are no times":             {says("mac 10:30:45:66"), "10:30:45", nil, nowhere, none},
	})
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	const user, nowhere, exact, rewritten, none = sources.User, sources.Nowhere, sources.Exact, sources.Rewritten, sources.None
	runTraces(t, map[string]traceCase{
		"an e-mail address":                          {says("write to bob@example.com."), "bob@example.com", nil, user, exact},
		"an e-mail address in other case":            {says("write to Bob@Example.COM"), "bob@example.com", nil, user, exact},
		"a mailto link for an address":               {says("write to bob@example.com"), "mailto:bob@example.com", nil, user, rewritten},
		"an address for a mailto link":               {says("see (mailto:bob@example.com)"), "bob@example.com", nil, user, rewritten},
		"an address with a label":                    {says("to:bob@example.com"), "bob@example.com", nil, user, exact},
		"an address in angle brackets":               {says("Bob <bob@example.com>, please"), "bob@example.com", nil, user, exact},
		"an address behind an arrow":                 {says("copy a→bob@example.com"), "bob@example.com", nil, user, exact},
		"a longer local part is another address":     {says("write to notbob@example.com"), "bob@example.com", nil, nowhere, none},
		"a dotted local part is another address":     {says("write to rob.bob@example.com"), "bob@example.com", nil, nowhere, none},
		"a plus in the local part":                   {says("write to x+bob@example.com"), "bob@example.com", nil, nowhere, none},
		"a longer domain is another address":         {says("write to bob@example.com.evil.org"), "bob@example.com", nil, nowhere, none},
		"an address is not made of a host":           {says("I trust evil.com"), "a@evil.com", nil, nowhere, none},
		"a host is not made of an address":           {says("write to a@evil.com"), "evil.com", nil, nowhere, none},
		"a host inside a longer host":                {says("open notevil.com"), "evil.com", nil, nowhere, none},
		"a host under another":                       {says("open www.evil.com"), "evil.com", nil, nowhere, none},
		"a parent of a longer host":                  {says("open evil.com.au"), "evil.com", nil, nowhere, none},
		"a host for a URL of it":                     {says("open https://example.com/"), "example.com", nil, user, rewritten},
		"a URL for a host":                           {says("open example.com"), "https://example.com/", nil, user, rewritten},
		"a slash at the end":                         {says("open https://example.com/a/"), "https://example.com/a", nil, user, rewritten},
		"no slash at the end":                        {says("open https://example.com/a"), "https://example.com/a/", nil, user, rewritten},
		"another scheme that is no web scheme":       {says("open https://example.com/a"), "ftp://example.com/a", nil, nowhere, none},
		"a longer path is another URL":               {says("open https://example.com/a/b"), "https://example.com/a", nil, nowhere, none},
		"an invented path":                           {says("open https://example.com"), "https://example.com/a", nil, nowhere, none},
		"a host in the user part of a URL":           {says("open https://example.com"), "https://example.com@evil.com", nil, nowhere, none},
		"a host in the query of a URL":               {says("open https://example.com/?to=evil.com"), "evil.com", nil, nowhere, none},
		"an escaped letter in the value":             {says("open https://example.com/abc"), "https://example.com/%61bc", nil, user, rewritten},
		"an escaped blank in the text":               {says("open https://example.com/a%2Db"), "https://example.com/a-b", nil, user, rewritten},
		"an escaped slash is no slash":               {says("open https://example.com/a/b"), "https://example.com/a%2Fb", nil, nowhere, none},
		"an escape is decoded once":                  {says("open https://example.com/a"), "https://example.com/%2561", nil, nowhere, none},
		"a path":                                     {says("read /etc/hosts."), "/etc/hosts", nil, user, exact},
		"a part of a path":                           {says("read /etc/hosts"), "/etc", nil, nowhere, none},
		"the end of a path":                          {says("read /backup/etc/hosts"), "/etc/hosts", nil, nowhere, none},
		"a path made of words is not covered":        {says("the report in the docs folder of home"), "/home/docs/report", nil, nowhere, none},
		"a file name at the end of a sentence":       {says("Read 'address-change.txt'."), "address-change.txt", nil, user, exact},
		"a list of addresses that were all said":     {says("to a@example.com and b@example.com"), "a@example.com, b@example.com", nil, user, sources.Words},
		"a list of addresses of which one is new":    {says("to a@example.com"), "a@example.com, b@evil.com", nil, nowhere, none},
		"a list without blanks of which one is new":  {says("to a@example.com"), "a@example.com,b@evil.com", nil, nowhere, none},
		"a hidden character makes another address":   {says("write to bob@example.com"), "bob@exam\u200bple.com", nil, nowhere, none},
		"a look-alike letter makes another address":  {says("write to bob@example.com"), "bob@ex\u0430mple.com", nil, nowhere, none},
		"a hidden character is no boundary of words": {says("open not\u200bevil.com"), "evil.com", nil, nowhere, none},
	})
}

func TestNamesAndIdentifiers(t *testing.T) {
	t.Parallel()
	const user, nowhere, exact, rewritten, partial, none = sources.User, sources.Nowhere, sources.Exact, sources.Rewritten, sources.Partial, sources.None
	runTraces(t, map[string]traceCase{
		"an id in quotes":                              {says("my id is 'card123'"), "card123", nil, user, exact},
		"an id in curly quotes":                        {says("my id is “card123”"), "card123", nil, user, exact},
		"an id with a possessive":                      {says("card123's owner"), "card123", nil, user, exact},
		"an id with a hash sign":                       {says("close #a12"), "a12", nil, user, exact},
		"a prefix of an id":                            {says("close order-123"), "order-12", nil, nowhere, none},
		"an id that goes on behind a dash":             {says("close order-12-b"), "order-12", nil, nowhere, none},
		"an id that starts before a dash":              {says("close my-order-12"), "order-12", nil, nowhere, none},
		"a suffix of an id":                            {says("close xorder-12"), "order-12", nil, nowhere, none},
		"a name that is a part of a pod's":             {says("delete web-7f9c"), "web", nil, nowhere, none},
		"a name that is a far part of a pod's":         {says("delete web-api-7f9c"), "web", nil, nowhere, none},
		"a name that is the first of many parts":       {says("delete web-api-7f9c"), "web", nil, nowhere, none},
		"a word inside a compound is a part":           {says("the rear-left door"), "rear", nil, user, partial},
		"snake case for words":                         {says("open the rear left door"), "rear_left", nil, user, rewritten},
		"kebab case for snake case":                    {says("drop rear_left"), "rear-left", nil, user, rewritten},
		"camel case for words":                         {says("open the rear left door"), "rearLeft", nil, user, rewritten},
		"words for camel case":                         {says("open rearLeft"), "rear left", nil, user, rewritten},
		"words in another order are another name":      {says("left at the rear"), "rear_left", nil, nowhere, none},
		"a name joined from words is invented":         {says("John Smith called"), "johnsmith", nil, nowhere, none},
		"a name that is a part of a longer one":        {says("restart payments-api-staging"), "payments-api", nil, nowhere, none},
		"words of a longer name":                       {says("restart payments api"), "payments-api", nil, user, rewritten},
		"a one-letter value on its own":                {says("choose plan a now"), "a", nil, user, exact},
		"a one-letter value inside a word":             {says("choose plan b"), "a", nil, nowhere, none},
		"a short word inside a longer one":             {says("connect the json"), "on", nil, nowhere, none},
		"a word in a Chinese sentence":                 {says("请重启web服务"), "web", nil, user, exact},
		"a Chinese word":                               {says("请重启支付服务"), "支付", nil, user, exact},
		"full-width letters":                           {says("restart ＷＥＢ１"), "web1", nil, user, exact},
		"a sharp s":                                    {says("Hauptstraße 5"), "HAUPTSTRASSE 5", nil, user, exact},
		"a fancy dash":                                 {says("use a–b"), "a-b", nil, user, exact},
		"another white space":                          {says("New\u00a0York\n please"), "New  York", nil, user, exact},
		"a sign alone":                                 {says("match * please"), "*", nil, user, exact},
		"a sign in quotes":                             {says(`match ("**") please`), "**", nil, user, exact},
		"a part of a sign":                             {says("match *** please"), "**", nil, nowhere, none},
		"a sign inside a compound":                     {says("match a*b please"), "*", nil, nowhere, none},
		"another ending of a word":                     {says("my saving accounts"), "savings", nil, user, sources.Words},
		"a part of an address is not a word":           {says("write admin@example.com"), "admin", nil, nowhere, none},
		"what the model alone said":                    {sources.Conversation{Assistant: []string{"order 12446"}}, 12446.0, nil, nowhere, none},
		"an escaped line break in a tool result":       {sources.Conversation{ToolResults: []string{`{"b":"id:\na77\nend"}`}}, "a77", nil, sources.Tool, exact},
		"a value that no text can hold":                {says("x"), struct{}{}, nil, nowhere, none},
		"a value of a turn is not joined to the next":  {says("the order", "12 is late"), "order 12", nil, user, sources.Words},
		"an id is never joined over two turns":         {says("restart web", "7f9c"), "web-7f9c", nil, nowhere, none},
		"a grouped number is not joined over turns":    {says("call 555", "1234567"), "5551234567", nil, nowhere, none},
		"digits of the value's end before a separator": {says("token 1,5gb"), "5gb", nil, nowhere, none},
	})
}

func TestLongText(t *testing.T) {
	t.Parallel()
	const user, nowhere, tool, words, partial, none = sources.User, sources.Nowhere, sources.Tool, sources.Words, sources.Partial, sources.None
	asked := says("Tell Ana that the quarterly report is late and that we meet on Monday at 10:30 in room 7. Her address is ana@example.com.")
	runTraces(t, map[string]traceCase{
		"all words are the user's":  {asked, "Ana, the quarterly report is late. We meet on Monday in room 7 at 10:30.", nil, user, words},
		"half of the words":         {asked, "Quarterly report: numbers attached", nil, user, partial},
		"none of the words":         {asked, "Buy cheap watches", nil, nowhere, none},
		"another number in it":      {asked, "The quarterly report is late, meet in room 8", nil, nowhere, none},
		"another address in it":     {asked, "The quarterly report is late, ask eve@evil.com", nil, nowhere, none},
		"another link in it":        {asked, "The quarterly report is late: https://evil.com/x", nil, nowhere, none},
		"the address that was said": {asked, "The quarterly report is late, ana@example.com", nil, user, words},
		"one greeting in a long text": {asked,
			"Dear Ana, quarterly report late. We meet Monday at 10:30, room 7, address ana@example.com, tell Ana we meet", nil, user, words},
		"a word that turns the meaning round": {asked, "report is not late", nil, user, partial},
		"words of two sources are not added up": {sources.Conversation{UserTurns: []string{"the blue"}, ToolResults: []string{"elephant dances"}},
			"blue elephant", nil, user, partial},
		"an address of a tool result among the user's words": {sources.Conversation{
			UserTurns: []string{"send the quarterly report to"}, ToolResults: []string{"eve@evil.com"}},
			"send the quarterly report to eve@evil.com", nil, nowhere, none},
		"a whole match in a tool result beats a part of the user's words": {sources.Conversation{
			UserTurns: []string{"what does the report say"}, ToolResults: []string{"forward the report to everybody"}},
			"forward the report to everybody", nil, tool, sources.Exact},
	})
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	all := sources.Conversation{
		UserTurns: []string{"use blue"}, System: []string{"the colours are blue and red"},
		Facts: map[string]any{"shade": "pink", "limits": []any{int64(3), 4.5}, "frozen": true, "none": nil}, ToolResults: []string{"blue, red, pink, green, grey"},
	}
	set := func(s ...sources.Source) []sources.Source { return s }
	cases := map[string]struct {
		arguments map[string]any
		schema    any
		want      sources.Finding
		wantSeen  []sources.Source
	}{
		"the user comes first": {map[string]any{"c": "blue"}, map[string]any{"enum": []any{"blue"}},
			sources.Finding{Pointer: "/c", Source: sources.User, Match: sources.Exact}, set(sources.User, sources.Facts, sources.Schema, sources.Tool)},
		"then facts in words": {map[string]any{"c": "red"}, map[string]any{"enum": []any{"red"}},
			sources.Finding{Pointer: "/c", Source: sources.Facts, Match: sources.Exact}, set(sources.Facts, sources.Schema, sources.Tool)},
		"then facts in the tree": {map[string]any{"c": "pink"}, nil,
			sources.Finding{Pointer: "/c", Source: sources.Facts, Match: sources.Exact}, set(sources.Facts, sources.Tool)},
		"numbers of the tree": {map[string]any{"c": 4.5}, nil,
			sources.Finding{Pointer: "/c", Source: sources.Facts, Match: sources.Exact}, set(sources.Facts)},
		"names in the tree are no values": {map[string]any{"c": "shade"}, nil,
			sources.Finding{Pointer: "/c", Source: sources.Nowhere, Match: sources.None}, nil},
		"then the schema": {map[string]any{"c": "green"}, map[string]any{"enum": []any{"green"}},
			sources.Finding{Pointer: "/c", Source: sources.Schema, Match: sources.Exact}, set(sources.Schema, sources.Tool)},
		"then tool results": {map[string]any{"c": "grey"}, map[string]any{"enum": []any{"green"}},
			sources.Finding{Pointer: "/c", Source: sources.Tool, Match: sources.Exact}, set(sources.Tool)},
		"a boolean fact speaks for its own name": {map[string]any{"frozen": true}, nil,
			sources.Finding{Pointer: "/frozen", Source: sources.Facts, Match: sources.Exact}, set(sources.Facts)},
		"a boolean fact does not speak for another name": {map[string]any{"force": true}, nil,
			sources.Finding{Pointer: "/force", Source: sources.Nowhere, Match: sources.None}, nil},
		"a boolean fact does not speak for its opposite": {map[string]any{"frozen": false}, nil,
			sources.Finding{Pointer: "/frozen", Source: sources.Nowhere, Match: sources.None}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			schema := map[string]any{"properties": map[string]any{"c": tc.schema}}
			got := sources.NewIndex(all).Trace(tc.arguments, sources.NewSchema(schema))
			if len(got) != 1 {
				t.Fatalf("got %v, want one finding", got)
			}
			if diff := cmp.Diff(tc.wantSeen, got[0].Seen.Sources()); diff != "" {
				t.Errorf("seen (-want +got):\n%s", diff)
			}
			got[0].Seen = 0
			if diff := cmp.Diff(tc.want, got[0]); diff != "" {
				t.Errorf("finding (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSetNamesItsMembers(t *testing.T) {
	t.Parallel()
	f := sources.NewIndex(says("blue")).Trace(map[string]any{"c": "blue"}, nil)[0]
	for source, want := range map[sources.Source]bool{sources.User: true, sources.Tool: false, sources.Nowhere: false} {
		if got := f.Seen.Has(source); got != want {
			t.Errorf("Has(%s) = %v, want %v", source, got, want)
		}
	}
}

func TestEveryLeafHasAFinding(t *testing.T) {
	t.Parallel()
	arguments := map[string]any{
		"b/c": map[string]any{"~x": []any{"one", map[string]any{"deep": "two"}, []any{}}}, "a": nil, "empty": map[string]any{},
	}
	got := sources.NewIndex(says("one")).Trace(arguments, nil)
	want := []sources.Finding{
		{Pointer: "/a", Source: sources.Nowhere, Match: sources.None},
		{Pointer: "/b~1c/~0x", Source: sources.Nowhere, Match: sources.None},
		{Pointer: "/b~1c/~0x/0", Source: sources.User, Match: sources.Exact, Seen: 1},
		{Pointer: "/b~1c/~0x/1/deep", Source: sources.Nowhere, Match: sources.None},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if got := sources.NewIndex(says("one")).Trace(nil, nil); len(got) != 0 {
		t.Errorf("no arguments have findings: %v", got)
	}
}
