"""Megatron-Core training: architecture, weights, batches, the ranks' loop and how they are launched.

One process group runs per seed: data x tensor x pipeline ranks under torchrun, NCCL with CUDA, gloo without.
"""
