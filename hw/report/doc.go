// Package report collects the facts about a machine and a program that every result must carry: two figures compare only
// if these agree, or if the difference is what was to be measured.
package report
