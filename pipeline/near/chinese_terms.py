"""The Chinese tables of `terms`, which explains how they are laid out, and units of length in Chinese texts."""

from __future__ import annotations

import re

CHINESE_TERM_LINES = """
底面积 底面面积
表面积 表面
侧面积 侧面
占地面积 占地
面积
底面周长
周长
体积 容积
半径
直径
边长
棱长总和 棱长和 棱长之和 所有棱长 总棱长
棱长 棱
高度 高是 高为 的高 高多少
宽是 宽为 的宽 宽多少
长是 长为 的长 长多少

顶角
底角

圆锥
圆柱
正方体
长方体

正方形
长方形
三角形
平行四边形
梯形
半圆
圆环

最大 最多 至多
最小 最少 至少

质数 素数
合数

奇数
偶数

利息
本金
取回 本息

男生 男
女生 女

增加 涨 提高
减少 降 降低 便宜

前项
后项

被减数
减数

速度
路程
时间

分子
分母

第一
第二
第三
第四
两天 两次

上山
下山

返回
去时

成人 大人
儿童

红
白
黄
黑

甲
乙
丙
丁

未 没有

平均

倒数

商

余数

剩下 还剩 余下 剩余 剩

不

倍

几分之几 百分之几

比
"""
CHINESE_UNIT = re.compile(r"(?:平方|立方)?(?:千米|厘米|分米|毫米|米|(?:km|cm|dm|mm|m)(?:\^?[23])?(?![a-z]))")
"""This matches units of length, area and volume in a Chinese text."""
_CHINESE_UNITS = {"千米": "km", "厘米": "cm", "分米": "dm", "毫米": "mm", "米": "m"}
IDLE_CHARACTERS = frozenset(
    "的了是在有个和把这那它其中每共一为要着地得所以到已知问请用将成就需后如果那么与及各该现又只再从被给比按照样"
    "块条张支本种些元角分"
)
"""Chinese characters that come and go in other words."""


def chinese_unit(unit: str) -> str:
    """Return the unit of length of a match of CHINESE_UNIT."""
    base = unit.lower().removeprefix("平方").removeprefix("立方").rstrip("^23")
    return _CHINESE_UNITS.get(base, base)
