"""A log's returns and intentions come in; the credit of every action goes out (paper sec. 3.3).

Start with `chain`: cuts, the choice of k (`selection`), credit and its quality, as the stages,
online training, the command and the Python function run them. The ways to credit are in `methods`.
"""
