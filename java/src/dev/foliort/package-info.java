/**
 * Folio, a CPU inference runtime for ONNX models. {@link dev.foliort.Model} opens a file,
 * {@link dev.foliort.Session} runs it, {@link dev.foliort.Tensor} is what goes in and comes out.
 */
package dev.foliort;
