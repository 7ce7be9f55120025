package report

import (
	"fmt"
	"html/template"
	"io"
	"regexp"
	"strings"
)

// Page is a report as one HTML file: no script, no font, no request to anywhere.
type Page struct {
	Title    string
	Verdict  string // one plain sentence of what was seen
	Passed   bool   // colours the verdict
	Sections []Section
	Facts    []Fact // the machine, the seed, the versions
	Command  string // what to type to get it again
}

// Section is a group of charts and tables under one heading.
type Section struct {
	Title  string
	Text   string
	Charts []LineChart
	Tables []DataTable
}

// DataTable holds the numbers behind the charts. Text stands to the left, numbers to the right.
type DataTable struct {
	Title   string
	Columns []string // with units
	Rows    [][]string
	Text    int  // so many columns, from the first on, are text; 0 = 1
	Folded  bool // shows its title alone until it is opened; for what few will read
}

// IsText reports whether a column is text.
func (t DataTable) IsText(column int) bool { return column < max(t.Text, 1) }

// WriteHTML writes the page.
func (p Page) WriteHTML(w io.Writer) error {
	view := pageView{Page: p, Style: template.CSS(styleSheet())}
	for _, s := range p.Sections {
		v := sectionView{Section: s}
		for _, c := range s.Charts {
			svg, err := c.svg()
			if err != nil {
				return fmt.Errorf("write page %q: %w", p.Title, err)
			}
			v.Figures = append(v.Figures, figureView{c.Title, c.Caption, template.HTML(inline(svg, c.Title))})
		}
		view.Views = append(view.Views, v)
	}
	if err := pageTemplate.Execute(w, view); err != nil {
		return fmt.Errorf("write page %q: %w", p.Title, err)
	}
	return nil
}

// What the template sees.
type (
	pageView struct {
		Page
		Style template.CSS
		Views []sectionView
	}
	sectionView struct {
		Section
		Figures []figureView
	}
	figureView struct {
		Title, Caption string
		SVG            template.HTML
	}
)

var (
	svgPrelude = regexp.MustCompile(`(?s)^.*?<svg[^>]*?viewBox="([^"]*)"[^>]*>`)
	svgFont    = regexp.MustCompile(`font-family:[^;]*;font-variant:[^;]*;font-weight:[^;]*;font-style:[^;]*;?`)
)

// inline prepares an SVG to stand within the page: scaled by the page, named for screen readers, with the page's font
// (its widths are those of the font that the layout was made with) and the page's colours.
func inline(svg, title string) string {
	svg = svgPrelude.ReplaceAllString(svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="$1" role="img" aria-label="`+
		strings.ReplaceAll(template.HTMLEscapeString(title), "$", "$$")+`">`)
	svg = svgFont.ReplaceAllString(svg, "")
	pairs := make([]string, 0, 2*len(allRoles()))
	for _, r := range allRoles() {
		pairs = append(pairs, r.light, "var(--"+r.variable+")")
	}
	return strings.NewReplacer(pairs...).Replace(svg)
}

// styleSheet is the page's only style.
func styleSheet() string {
	return ":root{color-scheme:light dark;--page:#FFFFFF;--card:#FAFBFC;--good:#00704F;--bad:#B23A00;" + variables(false) + "}" +
		"@media (prefers-color-scheme:dark){:root{--page:#14171B;--card:#1A1E23;--good:#3CCB9A;--bad:#FF9A62;" + variables(true) + "}}" + pageRules
}

const pageRules = `
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 "Liberation Sans",Arial,Helvetica,sans-serif}
main{max-width:1240px;margin:0 auto;padding:32px 24px 64px}
h1{font-size:28px;line-height:1.2;margin:0 0 12px}
h2{font-size:20px;margin:44px 0 6px}
h3{font-size:15px;line-height:1.35;margin:0 0 4px}
p{margin:0 0 12px;max-width:76ch}
.verdict{font-size:18px;border-left:4px solid var(--bad);padding:4px 0 4px 14px;margin:0 0 16px}
.verdict.passed{border-color:var(--good)}
.figures{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,520px),1fr));gap:20px;margin:14px 0}
figure{margin:0;padding:16px 18px 12px;background:var(--card);border:1px solid var(--grid);border-radius:8px}
figcaption p{font-size:13.5px;color:var(--muted);margin:0 0 10px}
svg{display:block;width:100%;height:auto;font-family:"Liberation Sans",Arial,Helvetica,sans-serif}
.scroll{overflow-x:auto;margin:12px 0 20px}
table{border-collapse:collapse;font-size:13.5px;font-variant-numeric:tabular-nums}
summary{font-size:14px;font-weight:bold;cursor:pointer;margin:10px 0}
caption{text-align:left;font-weight:bold;padding:0 0 6px}
th,td{padding:5px 12px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}
.text{text-align:left}
td.text:last-child{white-space:normal}
th:first-child,td:first-child{padding-left:0}
thead th{color:var(--muted);font-weight:normal;vertical-align:bottom;white-space:normal}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 18px;font-size:14px;margin:8px 0 16px}
dt{color:var(--muted)}dd{margin:0;overflow-wrap:anywhere}
pre{font-size:13.5px;background:var(--card);border:1px solid var(--grid);border-radius:6px;padding:10px 12px;white-space:pre-wrap;overflow-wrap:anywhere}
@media print{figure{break-inside:avoid}}
`

var pageTemplate = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>{{.Title}}</title>
<style>{{.Style}}</style>
</head>
<body>
<main>
<h1>{{.Title}}</h1>
<p class="verdict{{if .Passed}} passed{{end}}">{{.Verdict}}</p>
{{range .Views}}<section>
<h2>{{.Title}}</h2>
{{with .Text}}<p>{{.}}</p>
{{end}}{{if .Figures}}<div class="figures">
{{range .Figures}}<figure>
<figcaption><h3>{{.Title}}</h3>{{with .Caption}}<p>{{.}}</p>{{end}}</figcaption>
{{.SVG}}
</figure>
{{end}}</div>
{{end}}{{range .Tables}}{{if .Folded}}<details><summary>{{.Title}}</summary>
{{end}}<div class="scroll"><table>
{{if and .Title (not .Folded)}}<caption>{{.Title}}</caption>
{{end}}<thead><tr>{{$table := .}}{{range $i, $name := .Columns}}<th scope="col"{{if $table.IsText $i}} class="text"{{end}}>{{$name}}</th>{{end}}</tr></thead>
<tbody>
{{range .Rows}}<tr>{{range $i, $cell := .}}<td{{if $table.IsText $i}} class="text"{{end}}>{{$cell}}</td>{{end}}</tr>
{{end}}</tbody>
</table></div>
{{if .Folded}}</details>
{{end}}{{end}}</section>
{{end}}<section>
<h2>How this was measured</h2>
<dl>
{{range .Facts}}<dt>{{.Name}}</dt><dd>{{.Value}}</dd>
{{end}}</dl>
{{with .Command}}<pre>{{.}}</pre>
{{end}}</section>
</main>
</body>
</html>
`))
