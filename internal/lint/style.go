package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// The limits of the house: what is longer is not read in one go.
const (
	functionLinesMax = 70
	fileLinesMax     = 600
)

// checkLength finds functions and files that are too long; generated files are nobody's reading.
func checkLength(sources []*source) (findings []finding) {
	for _, s := range sources {
		if s.generated() {
			continue
		}
		if lines := s.lineCount(); lines > fileLinesMax {
			findings = append(findings, finding{s.path, fileLinesMax + 1, fmt.Sprintf("file of %d lines; at most %d are read in one go", lines, fileLinesMax)})
		}
		if !s.isGo() {
			continue
		}
		for _, declaration := range s.syntax.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if lines := s.line(function.End()) - s.line(function.Pos()) + 1; lines > functionLinesMax {
				findings = append(findings,
					s.at(function.Pos(), "function %s of %d lines; at most %d are read in one go",
						function.Name.Name, lines, functionLinesMax))
			}
		}
	}
	return findings
}

// checkDocs finds exported names without a doc comment and packages without exactly one package comment.
func checkDocs(sources []*source) (findings []finding) {
	packages := make(map[string][]*source)
	for _, s := range sources {
		if !s.isGo() || s.isTest() || s.generated() {
			continue
		}
		findings = append(findings, undocumented(s)...)
		id := s.dir() + " " + s.syntax.Name.Name // a folder can hold an ignored main beside its package
		packages[id] = append(packages[id], s)
	}
	for _, files := range packages {
		findings = append(findings, checkPackageComment(files)...)
	}
	return findings
}

func checkPackageComment(files []*source) (findings []finding) {
	name := files[0].dir()
	commented := slices.DeleteFunc(slices.Clone(files), func(s *source) bool { return s.syntax.Doc == nil })
	if len(commented) == 0 {
		return []finding{files[0].at(files[0].syntax.Package, "package %s has no package comment to start reading from", name)}
	}
	for _, s := range commented[1:] {
		findings = append(findings, s.at(s.syntax.Package, "second package comment of %s; the first is in %s, "+
			"and godoc would print both in a row", name, commented[0].path))
	}
	if first := commented[0]; len(commented) == 1 && len(files) > 1 && first.base() != "doc.go" {
		findings = append(findings, first.at(first.syntax.Package,
			"package %s has several files, so its comment belongs in doc.go, where one looks for it", name))
	}
	return findings
}

func undocumented(s *source) (findings []finding) {
	report := func(name *ast.Ident, kind string, docs ...*ast.CommentGroup) {
		if name.IsExported() && !slices.ContainsFunc(docs, func(d *ast.CommentGroup) bool { return d.Text() != "" }) {
			findings = append(findings, s.at(name.Pos(), "exported %s %s has no doc comment", kind, name.Name))
		}
	}
	for _, declaration := range s.syntax.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				report(d.Name, "function", d.Doc)
			} else if receiverName(d.Recv.List[0].Type).IsExported() {
				report(d.Name, "method", d.Doc)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					own := []*ast.CommentGroup{spec.Doc, spec.Comment}
					if !d.Lparen.IsValid() {
						own = append(own, d.Doc)
					}
					report(spec.Name, "type", own...)
				case *ast.ValueSpec: // one comment may speak for a group
					for _, name := range spec.Names {
						report(name, d.Tok.String(), spec.Doc, spec.Comment, d.Doc)
					}
				}
			}
		}
	}
	return findings
}

// receiverName strips the pointer and the type parameters of a receiver.
func receiverName(expression ast.Expr) *ast.Ident {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	case *ast.ParenExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e
	}
	return ast.NewIdent("_")
}

// placeholder matches the words that promise work instead of doing it. They are spelled in halves, so that this file
// passes its own rule.
var placeholder = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

// checkPlaceholders finds comments that put work off; an issue tracker remembers, a comment does not.
func checkPlaceholders(sources []*source) (findings []finding) {
	for _, s := range sources {
		report := func(line int, text string) {
			if word := placeholder.FindString(text); word != "" {
				findings = append(findings,
					finding{s.path, line, word + " in the source: do it, or open an issue and say here what holds meanwhile"})
			}
		}
		if !s.isGo() {
			for i, text := range strings.Split(s.text, "\n") {
				report(i+1, text)
			}
			continue
		}
		for _, group := range s.syntax.Comments {
			for _, comment := range group.List {
				for i, text := range strings.Split(comment.Text, "\n") {
					report(s.line(comment.Pos())+i, text)
				}
			}
		}
	}
	return findings
}

// checkSkips finds tests that skip without saying why: a green run must tell what it did not check.
func checkSkips(sources []*source) (findings []finding) {
	for _, s := range sources {
		if !s.isGo() || s.localName("testing") == "" {
			continue
		}
		ast.Inspect(s.syntax, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok {
				return true
			}
			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, selector.Sel.Name) {
				return true
			}
			if len(call.Args) == 0 || isEmptyString(call.Args[0]) {
				findings = append(findings, s.at(call.Pos(), "%s without a reason: say what is missing and how it was found out",
					selector.Sel.Name))
			}
			return true
		})
	}
	return findings
}

func isEmptyString(expression ast.Expr) bool {
	literal, ok := expression.(*ast.BasicLit)
	return ok && literal.Kind == token.STRING && strings.TrimSpace(literal.Value[1:len(literal.Value)-1]) == ""
}
