// Asks the program json_verdict (built from json_verdict.c) about many bodies at once.
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";

// `asked` is a list of { path, body }; gives what the program says to each: { json, found, key } or { json, refused }.
export function judge(asked) {
  if (!process.env.LANEGATE_BIN) throw new Error("set LANEGATE_BIN to the lanegate binary");
  const program = join(dirname(process.env.LANEGATE_BIN), "spec/npm/json_verdict"); // of the same build
  const input = asked.flatMap(({ path = "", body }) => {
    const parts = [Buffer.from(path), Buffer.from(body)];
    return [Buffer.from(`${parts[0].length} ${parts[1].length}\n`), ...parts];
  });
  const run = spawnSync(program, { input: Buffer.concat(input), maxBuffer: 64 << 20 });
  if (run.error || run.status !== 0) throw run.error ?? new Error(`${program}: ${run.stderr}`);
  const answers = run.stdout.toString().trimEnd().split("\n").map(JSON.parse);
  if (answers.length !== asked.length) throw new Error(`asked ${asked.length} times, ${answers.length} answers`);
  return answers;
}
