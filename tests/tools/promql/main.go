// Command promql checks Prometheus alert rules (*.yaml) and Grafana dashboards (*.json) with
// Prometheus's own parser. For each metric in their expressions it prints a line of JSON, with the
// labels that are used for matching or grouping.
package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// read is a metric that an expression reads, with labels.
type read struct {
	File   string   `json:"file"`
	Where  string   `json:"where"`
	Metric string   `json:"metric"`
	Labels []string `json:"labels"`
}

var promql = parser.NewParser(parser.Options{})

func main() {
	for _, file := range os.Args[1:] {
		if err := check(file); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

func check(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if filepath.Ext(file) == ".json" {
		var dashboard any
		if err := json.Unmarshal(b, &dashboard); err != nil {
			return err
		}
		return walk(file, "", dashboard)
	}
	groups, errs := rulefmt.ParseFile(file, false, model.LegacyValidation, promql, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		return errs[0]
	}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if err := expression(file, r.Alert, r.Expr); err != nil {
				return err
			}
		}
	}
	return nil
}

// walk finds the expressions of a dashboard.
func walk(file, where string, x any) error {
	switch x := x.(type) {
	case []any:
		for _, e := range x {
			if err := walk(file, where, e); err != nil {
				return err
			}
		}
	case map[string]any:
		if title, ok := x["title"].(string); ok {
			where = title
		}
		for k, v := range x {
			text, isText := v.(string)
			var err error
			switch query, isQuery := strings.CutPrefix(text, "label_values("); {
			case isText && k == "expr":
				err = expression(file, where, text)
			case isText && k == "query" && isQuery:
				metric, label, _ := strings.Cut(strings.TrimSuffix(query, ")"), ", ")
				err = expression(file, where, "sum by ("+label+") ("+metric+")")
			default:
				err = walk(file, where, v)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func expression(file, where, expr string) error {
	// What Grafana puts in.
	expr = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h").Replace(expr)
	parsed, err := promql.ParseExpr(expr)
	if err != nil {
		return fmt.Errorf("%s: %q: %w", where, expr, err)
	}
	var failed error
	parser.Inspect(parsed, func(n parser.Node, path []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		r := read{File: file, Where: where, Metric: s.Name}
		for _, m := range s.LabelMatchers {
			if m.Name != model.MetricNameLabel {
				r.Labels = append(r.Labels, m.Name)
			}
		}
		for _, p := range path {
			if a, ok := p.(*parser.AggregateExpr); ok {
				r.Labels = append(r.Labels, a.Grouping...)
			}
		}
		failed = json.NewEncoder(os.Stdout).Encode(r)
		return failed
	})
	return failed
}
