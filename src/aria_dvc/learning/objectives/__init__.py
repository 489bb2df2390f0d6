"""What a policy is trained to do, one module an objective or family (`policy.method`).

Tables become sequences with values (`material`), once an iteration the policy of the moment reads
them (`ready`), and each micro-batch has a loss. The clipped ratio serves PPO, SPAG, GRPO and GiGPO
(`clipped`), the pair loss both DPOs (`pairs`); `registry` has the one table of methods."""
