"""Trial: the plan against uniform sampling, paired by seed. Two seeds and four steps prove nothing, and it says so."""

from _shared import CONFIG, RUN

from mixwright import pipeline


def main() -> None:
    """Workers are separate processes, hence the guard below."""
    with pipeline.workers(CONFIG) as pool:
        result = pipeline.trial(CONFIG, RUN, pool)
    for effect in result.effects:
        low, high = effect.difference.low, effect.difference.high
        print(f"{effect.name}, {effect.arm} minus {effect.against}: [{low:+.2f}, {high:+.2f}] {effect.word}")


if __name__ == "__main__":
    main()
