//go:build race

package toolbox

const raceEnabled = true
