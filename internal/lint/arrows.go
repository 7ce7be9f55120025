package lint

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// testHelpers may be imported by the test files of any package, whatever the arrows say.
var testHelpers = []string{"bench/lab", "bench/lab/labtest", "internal/seedtest", "internal/transcript", "xsk/xsktest", "xsk/xsktest/contract"}

// everything, as the target of an arrow, allows all.
const everything = "everything"

// arrows is section 5 of ARCHITECTURE.md. A folder stands for its subtree, except for the parts of it that are named apart; a name
// that ends in /* stands for each child by itself.
type arrows struct {
	allowed map[string][]string // from a folder to the folders that it may import
	never   map[[2]string]bool
}

var (
	arrowBlock = regexp.MustCompile("(?s)\n## 5[^\n]*\n.*?```\n(.*?)```")
	columnGap  = regexp.MustCompile(`\s{2,}`)
	folderName = regexp.MustCompile(`^[a-z0-9]+(/[a-z0-9]+)*(/\*)?$`)
)

// parseArrows reads the drawing. What it cannot read is an error, or a line could be lost silently.
func parseArrows(document string) (*arrows, error) {
	block := arrowBlock.FindStringSubmatch(document)
	if block == nil {
		return nil, errors.New("no drawing between ``` in section 5")
	}
	a := &arrows{allowed: make(map[string][]string), never: make(map[[2]string]bool)}
	for line := range strings.Lines(block[1]) {
		line = strings.TrimSpace(line)
		if prohibitions, found := strings.CutPrefix(line, "never: "); found {
			if err := a.addNever(prohibitions); err != nil {
				return nil, err
			}
			continue
		}
		for _, arrow := range columnGap.Split(line, -1) {
			from, to, found := strings.Cut(arrow, " ─> ")
			if !found {
				return nil, fmt.Errorf("%q is not an arrow like \"a, b ─> c, d\"", arrow)
			}
			targets := strings.Split(to, ", ")
			if to == "nothing of ours" {
				targets = nil
			}
			names := strings.Split(from, ", ")
			for _, name := range append(slices.Clone(names), targets...) {
				if !folderName.MatchString(name) {
					return nil, fmt.Errorf("%q in %q is no folder", name, arrow)
				}
			}
			for _, name := range names {
				a.allowed[name] = targets
			}
		}
	}
	return a, nil
}

func (a *arrows) addNever(text string) error {
	for _, prohibition := range strings.Split(text, "; ") {
		if left, right, found := strings.Cut(prohibition, " <-> "); found {
			a.never[[2]string{left, right}] = true
			a.never[[2]string{right, left}] = true
		} else if from, to, found := strings.Cut(prohibition, " ─> "); found {
			a.never[[2]string{from, to}] = true
		} else {
			return fmt.Errorf("%q is not a prohibition like \"a ─> b\" or \"a <-> b\"", prohibition)
		}
	}
	return nil
}

// place returns the most exact folder of the drawing that a package belongs to, and the name under which that folder's own
// arrows stand; both are "" when it belongs to none.
func (a *arrows) place(pkg string) (folder, rule string) {
	names := slices.Collect(maps.Keys(a.allowed))
	for _, targets := range a.allowed {
		names = append(names, targets...)
	}
	for _, name := range names {
		candidate := name
		if parent, starred := strings.CutSuffix(name, "/*"); starred {
			child, found := strings.CutPrefix(pkg, parent+"/")
			if !found {
				continue
			}
			child, _, _ = strings.Cut(child, "/")
			candidate = parent + "/" + child
		}
		// At equal length, a name that has arrows of its own decides: hw/* over the mere target hw/clock.
		_, hasArrows := a.allowed[name]
		if under(pkg, candidate) && (len(candidate) > len(folder) || len(candidate) == len(folder) && hasArrows) {
			folder, rule = candidate, name
		}
	}
	return folder, rule
}

// check finds the imports that no arrow allows.
func (a *arrows) check(sources []*source) (findings []finding) {
	for _, s := range sources {
		if !s.isGo() {
			continue
		}
		for importPath, pos := range s.imports() {
			target, ours := strings.CutPrefix(importPath, modulePath+"/")
			if !ours || s.isTest() && slices.Contains(testHelpers, target) {
				continue
			}
			if reason := a.refuse(s.dir(), target); reason != "" {
				findings = append(findings, s.at(pos, "%s must not import %s: %s", s.dir(), target, reason))
			}
		}
	}
	return findings
}

// refuse returns why one package may not import another, or "".
func (a *arrows) refuse(from, to string) string {
	fromFolder, rule := a.place(from)
	toFolder, _ := a.place(to)
	switch {
	case from == to || fromFolder != "" && fromFolder == toFolder:
		return ""
	case a.never[[2]string{fromFolder, toFolder}]:
		return fmt.Sprintf("ARCHITECTURE.md, section 5, says never %s ─> %s", fromFolder, toFolder)
	case fromFolder == "":
		return "the folder has no arrow in ARCHITECTURE.md, section 5"
	}
	for _, target := range a.allowed[rule] {
		if target == everything || toFolder != "" && under(toFolder, target) {
			return ""
		}
	}
	return fmt.Sprintf("no arrow %s ─> %s in ARCHITECTURE.md, section 5", rule, to)
}
