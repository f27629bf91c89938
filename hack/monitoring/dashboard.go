package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
)

// dashboard is as much of a Grafana dashboard as is evaluated and drawn.
type dashboard struct {
	Title  string  `json:"title"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	GridPos     grid   `json:"gridPos"`
	FieldConfig struct {
		Defaults  defaults   `json:"defaults"`
		Overrides []override `json:"overrides"`
	} `json:"fieldConfig"`
	Targets []target `json:"targets"`
}

// grid is a place: 24 columns, rows of any number.
type grid struct{ H, W, X, Y int }

type defaults struct {
	Unit string `json:"unit"`
	// NoValue stands in place of data. A panel that has one may be empty.
	NoValue  string `json:"noValue"`
	Decimals *int   `json:"decimals"`
	Max      *float64
	Mappings []struct {
		Options map[string]struct {
			Text  string `json:"text"`
			Color string `json:"color"`
		} `json:"options"`
	} `json:"mappings"`
	Thresholds struct {
		Steps []struct {
			Color string   `json:"color"`
			Value *float64 `json:"value"`
		} `json:"steps"`
	} `json:"thresholds"`
	Custom struct {
		ThresholdsStyle struct {
			Mode string `json:"mode"`
		} `json:"thresholdsStyle"`
	} `json:"custom"`
}

type override struct {
	Matcher struct {
		Options string `json:"options"`
	} `json:"matcher"`
	Properties []struct {
		ID    string `json:"id"`
		Value struct {
			FixedColor string `json:"fixedColor"`
		} `json:"value"`
	} `json:"properties"`
}

type target struct {
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
	Instant      bool   `json:"instant"`
}

// kinds of panels that can be drawn.
var kinds = map[string]bool{"row": true, "timeseries": true, "stat": true, "bargauge": true}

func readDashboard(path string) (*dashboard, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var d dashboard
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	seen := map[int]bool{}
	var errs []error
	for i := range d.Panels {
		p := &d.Panels[i]
		if !kinds[p.Type] || seen[p.ID] || p.Type != "row" && len(p.Targets) == 0 {
			errs = append(errs, fmt.Errorf("%s: panel %q: its type is not known here, its id stands twice, or it asks nothing", path, p.Title))
		}
		seen[p.ID] = true
	}
	if len(d.Panels) == 0 {
		errs = append(errs, fmt.Errorf("%s has no panels", path))
	}
	return &d, errors.Join(errs...)
}

var labelInLegend = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// legend is the name of a series.
func (t *target) legend(metric map[string]string) string {
	return labelInLegend.ReplaceAllStringFunc(t.LegendFormat, func(s string) string {
		return metric[labelInLegend.FindStringSubmatch(s)[1]]
	})
}
