"""Special tokens, whose ids are the same in every tokenizer."""

PAD, UNKNOWN, START, END, TURN, PARTNER_SPEAKS, SELF_SPEAKS, NULL = range(8)

SPECIAL_TOKENS = (
    "<pad>", "<unk>", "<start>", "<end>", "<turn>", "<partner>", "<self>", "<null>",
)  # fmt: skip
N_SPECIAL = len(SPECIAL_TOKENS)
