package sources

import (
	"iter"
	"maps"
	"strings"
)

// Words that carry numbers, dates and units, and words that carry nothing. English only; text in another language is
// matched by its spelling alone, which errs towards the less trusted source.

var scaleWords = map[string]int{"hundred": 2, "thousand": 3, "k": 3, "grand": 3, "million": 6, "mio": 6, "billion": 9, "bn": 9, "trillion": 12}

// scaleSuffixes follow a digit without a blank. An m may also be metres or minutes, so it keeps the bare number too.
var scaleSuffixes = map[string]int{"k": 3, "m": 6, "mn": 6, "b": 9, "bn": 9}

var smallNumbers = map[string]int64{
	"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
	"ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
	"seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
	"sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}

// loneNumbers are no part of a longer number word. "second" is left out: it is a unit of time too.
var loneNumbers = map[string]string{
	"dozen": "12", "couple": "2", "pair": "2", "twice": "2", "both": "2", "once": "1", "single": "1", "half": "0.5",
	"first": "1", "third": "3", "fourth": "4", "fifth": "5", "sixth": "6", "seventh": "7", "eighth": "8", "ninth": "9",
	"tenth": "10",
}

var ordinalSuffixes = map[string]bool{"st": true, "nd": true, "rd": true, "th": true}

// units gives each unit one name. A value that names its unit stands only where the same unit stands.
var units = map[string]string{
	"ms": "ms", "millisecond": "ms", "milliseconds": "ms",
	"s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
	"min": "min", "mins": "min", "minute": "min", "minutes": "min",
	"h": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h",
	"d": "day", "day": "day", "days": "day", "week": "week", "weeks": "week", "month": "month", "months": "month",
	"year": "year", "years": "year", "yr": "year", "yrs": "year",
	"kb": "kb", "mb": "mb", "gb": "gb", "tb": "tb", "ki": "kib", "kib": "kib", "mi": "mib", "mib": "mib", "gi": "gib",
	"gib": "gib", "ti": "tib", "tib": "tib",
	"mm": "mm", "cm": "cm", "m": "m", "meter": "m", "meters": "m", "metre": "m", "metres": "m",
	"km": "km", "kms": "km", "kilometer": "km", "kilometers": "km", "kilometre": "km", "kilometres": "km",
	"mile": "mile", "miles": "mile", "ft": "ft", "feet": "ft", "foot": "ft", "in": "inch", "inch": "inch", "inches": "inch",
	"mg": "mg", "g": "g", "gram": "g", "grams": "g", "kg": "kg", "kgs": "kg", "kilogram": "kg", "kilograms": "kg",
	"lb": "lb", "lbs": "lb", "pound": "lb", "pounds": "lb", "oz": "oz",
	"l": "l", "liter": "l", "liters": "l", "litre": "l", "litres": "l", "ml": "ml", "gal": "gal", "gallon": "gal", "gallons": "gal",
	"mph": "mph", "kmh": "kmh", "hz": "hz", "khz": "khz", "mhz": "mhz", "ghz": "ghz", "w": "w", "kw": "kw", "kwh": "kwh",
	"c": "c", "f": "f", "degrees": "degree", "degree": "degree", "psi": "psi", "x": "times", "times": "times",
	"usd": "usd", "dollar": "usd", "dollars": "usd", "$": "usd", "eur": "eur", "euro": "eur", "euros": "eur", "€": "eur",
	"gbp": "gbp", "£": "gbp", "yen": "jpy", "jpy": "jpy", "¥": "jpy", "chf": "chf", "cent": "cent", "cents": "cent",
}

var percentWords = map[string]bool{"percent": true, "pct": true}

var months = map[string]int{
	"january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6, "july": 7, "august": 8, "september": 9,
	"october": 10, "november": 11, "december": 12,
	"jan": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "sept": 9, "oct": 10, "nov": 11, "dec": 12,
}

var relativeDays = wordSet("today tonight tomorrow yesterday now weekend monday tuesday wednesday thursday friday saturday sunday christmas easter")

// relativeLeads make a relative date together with a period behind them: "next week", "in 3 days".
var relativeLeads = wordSet("next this last in within past coming following previous")

var periods = wordSet("minute minutes hour hours day days week weeks month months quarter year years")

// shortPeriods move a time of day too.
var shortPeriods = wordSet("minute minutes hour hours")

var dayParts = wordSet("now morning noon midday afternoon evening night tonight midnight lunch lunchtime")

// clockLeads come before an hour that is named without am or pm.
var clockLeads = wordSet("at by from to until till around before after")

// stopWords carry no content. Words that turn the meaning round, such as "not", are content.
var stopWords = wordSet(`a an the to of for in on at by with and or is are was were be been it its this that these those
	i me my we us our you your he him his she her they them their please can could would should will shall do does did
	from as so if up into about there here have has had just also then than when which who what some any`)

// scannedWords are all words that start something the scanner reads, for one look-up where most words say nothing.
var scannedWords = union(maps.Keys(scaleWords), maps.Keys(smallNumbers), maps.Keys(loneNumbers), maps.Keys(months),
	maps.Keys(relativeDays), maps.Keys(relativeLeads), maps.Keys(dayParts))

func union(all ...iter.Seq[string]) map[string]struct{} {
	out := map[string]struct{}{}
	for _, words := range all {
		for w := range words {
			out[w] = struct{}{}
		}
	}
	return out
}

func wordSet(s string) map[string]struct{} {
	out := map[string]struct{}{}
	for w := range strings.FieldsSeq(s) {
		out[w] = struct{}{}
	}
	return out
}
