package transcript

import (
	"strings"
	"testing"
)

func TestPlay(t *testing.T) {
	const story = "# A story.\n\n# First,\n# this.\nsay one two\n----\none\ntwo\n\nnothing\n----\n\nsay lies\n----\ntruth\n\nsay new\n"
	const played = "# A story.\n\n# First,\n# this.\nsay one two\n----\none\ntwo\n\nnothing\n----\n\nsay lies\n----\nlies\n\nsay new\n----\nnew\n"
	var ran, differ []string
	got := play(story, func(fields []string) string {
		ran = append(ran, strings.Join(fields, " "))
		return strings.Join(fields[1:], "\n") + "\n"
	}, func(command, got, want string) { differ = append(differ, command+": "+got+", not "+want) })
	if got != played {
		t.Errorf("played:\n%s", got)
	}
	if all := strings.Join(ran, "; "); all != "say one two; nothing; say lies; say new" {
		t.Errorf("ran %s", all)
	}
	if all := strings.Join(differ, "; "); all != "say lies: lies, not truth; say new: new, not " {
		t.Errorf("differ: %s", all)
	}
	if again := play(got, func(fields []string) string { return strings.Join(fields[1:], "\n") }, func(command, _, _ string) { t.Errorf("%s differs", command) }); again != got {
		t.Errorf("played again:\n%s", again)
	}
}
