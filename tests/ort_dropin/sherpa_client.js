// A program made for sherpa-onnx-node: prints where a voice speaks in a .wav file, as seconds.
//
//   node sherpa_client.js SILERO_VAD_MODEL SPEECH.wav        NODE_PATH says where sherpa-onnx-node is
'use strict';
const sherpa = require('sherpa-onnx-node');

const [model, file] = process.argv.slice(2);
const rate = 16000;
const window = 512;
const vad = new sherpa.Vad({
  sileroVad: {model, threshold: 0.5, minSpeechDuration: 0.1, minSilenceDuration: 0.3, windowSize: window},
  sampleRate: rate, numThreads: 1, debug: false,
}, 60);

const wave = sherpa.readWave(file, false);
const samples = wave.sampleRate === rate ? wave.samples :
  new sherpa.LinearResampler(wave.sampleRate, rate).flush(wave.samples);
const segments = [];
const take = () => {
  for (; !vad.isEmpty(); vad.pop()) {
    const segment = vad.front(false);
    segments.push([segment.start / rate, (segment.start + segment.samples.length) / rate]);
  }
};
for (let at = 0; at + window <= samples.length; at += window) {
  vad.acceptWaveform(samples.subarray(at, at + window));
  take();
}
vad.flush();
take();
console.log(JSON.stringify(segments));
