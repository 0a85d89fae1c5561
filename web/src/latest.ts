/** Questions that come faster than answers: one is on its way, only the newest waits. */

export class Latest<Q, A> {
  private isBusy = false;
  private waiting: { question: Q } | null = null;

  constructor(
    private readonly ask: (question: Q) => Promise<A>,
    private readonly onAnswer: (answer: A, question: Q) => void,
    private readonly onError: (error: Error) => void,
  ) {}

  put(question: Q): void {
    if (this.isBusy) this.waiting = { question };
    else void this.send(question);
  }

  private async send(question: Q): Promise<void> {
    this.isBusy = true;
    try {
      this.onAnswer(await this.ask(question), question);
    } catch (error) {
      this.onError(error as Error);
    }
    this.isBusy = false;
    const next = this.waiting;
    this.waiting = null;
    if (next) await this.send(next.question);
  }
}
