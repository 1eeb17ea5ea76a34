"""Trial: the plan against uniform sampling, paired by seed. Two seeds and four steps prove nothing, and it says so."""

from _shared import CONFIG, RUN

from mixwright.api import trial


def main() -> None:
    """Workers are separate processes, hence the guard below."""
    result = trial(CONFIG, RUN)
    for effect in result.effects:
        low, high = effect.difference.low, effect.difference.high
        print(f"{effect.name}, {effect.arm} minus {effect.against}: [{low:+.2f}, {high:+.2f}] {effect.word}")


if __name__ == "__main__":
    main()
